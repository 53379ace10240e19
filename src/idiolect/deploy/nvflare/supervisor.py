"""Keep a hub's run going when sites, the hub or the network fail: job after job, each from the run's checkpoint."""

import contextlib
import time
import uuid
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from idiolect.core.errors import ConfigError, IdiolectError, StoreError
from idiolect.core.rights import restrict
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.forget import check_forgotten
from idiolect.deploy.hub.plan import current_study
from idiolect.deploy.hub.run import progress
from idiolect.deploy.hub.supervised import supervised
from idiolect.deploy.nvflare.jobs import End, clean_jobs, obstacle, read_end, write_job
from idiolect.deploy.nvflare.kits import HUB_FOLDER, Kit, certificate, harden, read_kit, require_kind
from idiolect.deploy.nvflare.processes import end_leftovers, has_died, running, start, starting
from idiolect.deploy.nvflare.register import register, register_folder
from idiolect.deploy.nvflare.session import LostError, Status, open_session, session

DONE = "FINISHED:COMPLETED"
_SURE = 6  # looks in a row at a job that nobody runs, before it is taken for dead

T = TypeVar("T")


class Engine(Protocol):
    """What a supervisor needs of a session."""

    def status(self) -> Status:
        """Registered sites, running jobs, start of the hub's process."""
        ...

    def submit(self, job: Path, token: str) -> str:
        """Submit a job's folder; its id. With the same token again, the same job."""
        ...

    def job_status(self, job: str) -> str:
        """RUNNING, FINISHED:COMPLETED, ..."""
        ...

    def job_sites(self, job: str) -> dict[str, str]:
        """The sites of a job."""
        ...

    def abort(self, job: str) -> None:
        """End a job."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


@dataclass(frozen=True)
class Limits:
    """Seconds, and how many jobs in a row may end without a new round."""

    poll: float = 0.5
    lost: float = 120.0  # without an answer of the hub
    register: float = 60.0  # for all wanted sites to register, before a job starts without the late ones
    ending: float = 30.0  # for a job to end that was stopped, or that has done its rounds
    fruitless: int = 3


@dataclass
class Watch:
    """One run under supervision.

    connect: opens a session; job: writes job number n and returns its folder; wanted: the sites of the run; least:
    how many of them a job needs; progress: rounds done; ended: what the hub wrote at the end of a job; obstacle: why
    it could not write; report: gets a line for each event; revive: starts the hub's process again if it has died, and
    says so in a line, "" if it runs.
    """

    connect: Callable[[], Engine]
    job: Callable[[int], Path]
    wanted: Collection[str]
    least: int
    progress: Callable[[], int]
    ended: Callable[[], End | None] = lambda: None
    report: Callable[[str], None] = lambda _: None
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    obstacle: Callable[[], str] = lambda: ""
    revive: Callable[[], str] = lambda: ""

    def __post_init__(self) -> None:
        self._engine: Engine | None = None
        self.jobs: list[str] = []

    def run(self) -> int:
        """Supervise until the last round is done; the number of jobs that it took.

        Raises `StoreError` with the last reason if jobs end without a new round, or the hub does not answer.
        """
        fruitless = 0
        try:
            while True:
                before = self.progress()
                reason = self._segment()
                if reason is None:
                    return len(self.jobs)
                fruitless = 0 if self.progress() > before else fruitless + 1
                if fruitless >= self.limits.fruitless:
                    raise StoreError(f"{fruitless} jobs in a row have ended without a new round; the last: {reason}")
                self.report(f"{reason}; a new job continues from round {self.progress()}")
        finally:
            self._close()

    def _segment(self) -> str | None:
        """Run one job; None when the run is done, else why it has ended."""
        sites = self._registered()
        known = self._ask(lambda engine: engine.status())
        since, first = known.since, dict(known.sites)
        folder = self.job(len(self.jobs) + 1)
        token = uuid.uuid4().hex
        job = self._ask(lambda engine: engine.submit(folder, token))
        self.jobs.append(job)
        self.report(f"job {len(self.jobs)} has started with {', '.join(sites)}")
        finished, unowned = None, 0
        while True:
            self.sleep(self.limits.poll)
            state, status = self._ask(lambda engine: (engine.job_status(job), engine.status()))
            end = self.ended()
            mine = end if end is not None and end.job == job else None
            if state.startswith("FINISHED"):
                return None if state == DONE and not (mine and mine.error) else self._why(state, mine)
            # A hub that was started after the submission does not resume the job; its store says RUNNING for ever.
            # Nothing can abort or delete the job then: it is forgotten.
            lost = state == "RUNNING" and job not in status.running and status.since > since
            unowned = unowned + 1 if lost else 0
            if unowned >= _SURE:
                return "the hub was started anew"
            if mine is not None:
                finished = self.clock() if finished is None else finished
                if self.clock() - finished > self.limits.ending:  # its rounds are over, but it does not end
                    self._end(job)
                    return self._why("aborted", mine) if mine.error else None
            elif back := self._back(job, status, first):
                self._end(job)
                return f"{', '.join(back)} registered again"

    def _why(self, state: str, end: End | None) -> str:
        if end is not None and end.final:
            raise StoreError(end.error)
        reason = end.error if end is not None else self.obstacle()
        return reason or f"the job has ended as {state}"

    def _back(self, job: str, status: Status, first: Mapping[str, str]) -> list[str]:
        """Wanted sites that are registered but not in this job: they came late, or anew since it runs."""
        if job not in status.running:
            return []
        inside = self._ask(lambda engine: engine.job_sites(job)) or first
        here = {site: status.sites[site] for site in self.wanted if site in status.sites}
        return sorted(s for s, mark in here.items() if s not in inside or (s in first and mark != first[s]))

    def _registered(self) -> list[str]:
        """Wait for the wanted sites; those registered, after `limits.register` seconds at least `least` of them."""
        started = reported_at = self.clock()
        while True:
            here = sorted(self._ask(lambda engine: engine.status()).sites.keys() & set(self.wanted))
            if len(here) == len(set(self.wanted)):
                return here
            waited = self.clock() - started
            if waited > self.limits.register and len(here) >= self.least:
                return here
            missing = ", ".join(sorted(set(self.wanted) - set(here)))
            if waited > self.limits.register + self.limits.lost:
                raise StoreError(f"{len(here)} of the {self.least} sites needed are registered; missing: {missing}")
            if self.clock() - reported_at > 10:
                reported_at = self.clock()
                self.report(f"waiting for {missing}")
            self.sleep(self.limits.poll)

    def _end(self, job: str) -> None:
        """Abort a job and wait until it has ended."""
        self._ask(lambda engine: engine.abort(job))
        started = self.clock()
        while self.clock() - started < self.limits.ending:
            if self._ask(lambda engine: engine.job_status(job)).startswith("FINISHED"):
                return
            self.sleep(self.limits.poll)

    def _ask(self, question: Callable[[Engine], T]) -> T:
        """Ask the hub; over a lost session again with a new one, until `limits.lost` seconds have passed."""
        started = self.clock()
        while True:
            try:
                if self._engine is None:
                    self._engine = self.connect()
                return question(self._engine)
            except LostError as error:
                self._close()
                if self.clock() - started > self.limits.lost:
                    raise StoreError(str(error)) from None
                if line := self.revive():
                    self.report(line)
                self.sleep(self.limits.poll)

    def _close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            with contextlib.suppress(IdiolectError):
                engine.close()


FIRST = 60.0
"""Seconds for a hub's process to answer after its start."""


@dataclass(frozen=True)
class HubKits:
    """The kits on the hub's side: the hub's own, and that of who submits its jobs."""

    hub: Kit
    lead: Kit


def hub_kits(hub: Path, admin: Path) -> HubKits:
    """The two kits, checked. Raises `ConfigError` for kits of others, `StoreError` for damaged ones."""
    kits = HubKits(read_kit(hub), read_kit(admin))
    require_kind(kits.hub, "server")
    require_kind(kits.lead, "admin")
    certificate(kits.lead)
    return kits


def start_hub(kits: HubKits) -> bool:
    """Harden and start the hub's process; False if it runs already. It works for all studies of the kit's register.

    Raises `ConfigError` if it runs for something else, `StoreError` if it cannot run.
    """
    harden(kits.hub.folder)
    restrict(kits.lead.folder)
    with starting(kits.hub):
        pid = running(kits.hub)
        if pid is None:
            _start(kits.hub)
            return True
    import psutil

    with contextlib.suppress(psutil.Error):
        other = psutil.Process(pid).environ().get(HUB_FOLDER, "")
        if Path(other) != register_folder(kits.hub):
            raise ConfigError(
                f"the hub's process {pid} works in '{other}' and not for the kit's studies; end it with: "
                f"idiolect hub stop --kit {kits.hub.folder}"
            )
    return False


def _start(hub: Kit) -> None:
    end_leftovers(hub)  # a job's process outlives the hub's for seconds, and holds its port
    clean_jobs(hub)
    start(hub, {HUB_FOLDER: str(register_folder(hub))})


def revive(hub: Kit) -> str:
    """Start the hub's process again if it has died: a line that says so, "" if it runs.

    Raises `ConfigError` if `idiolect hub stop` has ended it.
    """
    with starting(hub):
        if running(hub) is not None:
            return ""
        if not has_died(hub):
            raise ConfigError("the hub's process has been stopped; 'idiolect hub run' continues from the checkpoint")
        try:
            _start(hub)
        except StoreError as error:  # a port that is not free yet: the next look tries again
            return f"the hub's process has died and cannot be started: {error}"
    return "the hub's process has died; it is started again"


def end_jobs(kits: HubKits, study: str) -> int:
    """End a study's jobs that a supervisor which is gone has left; how many. Jobs of other studies continue.

    Raises `StoreError` if the hub never answers.
    """
    end, ended = time.monotonic() + FIRST, set[str]()
    while True:
        try:
            with session(kits.lead) as opened:
                while True:
                    left, runs = opened.unfinished(_prefix(study)), opened.status().running
                    for job in left:
                        if job not in ended:
                            opened.abort(job)
                            ended.add(job)
                    # One that no process runs is a record that a killed hub has left: nothing can end it.
                    if not ended.intersection(left).intersection(runs) or time.monotonic() > end:
                        return len(ended.intersection(runs) | (ended - {*left}))
                    time.sleep(0.5)
        except LostError:
            if running(kits.hub) is None or time.monotonic() > end:
                raise
            time.sleep(0.5)


def _prefix(study: str) -> str:
    """What the names of a study's jobs begin with."""
    return f"{study}."


def study_id(folder: Path) -> str:
    """The id of a hub's study; a folder of an idiolect before studies gets one."""
    return HubConfig.load(folder).study or current_study(folder)[0].id


def watch_of(folder: Path, kits: HubKits, report: Callable[[str], None], query: str = "") -> Watch:
    """The supervisor of a hub's folder. A job needs as many sites as a round of all sites needs answers.

    query: the id of a query that the job asks; "" for a job that trains.
    """
    config, study = HubConfig.load(folder), study_id(folder)
    least = config.needed(len(config.present))
    arguments = {"folder": study, **({"run": query} if query else {})}
    return Watch(
        connect=lambda: open_session(kits.lead),
        job=lambda number: write_job(folder / "jobs", f"{_prefix(study)}{number}", arguments, least),
        wanted=config.present,
        least=least,
        progress=lambda: progress(folder)[0],
        ended=lambda: read_end(folder),
        obstacle=lambda: obstacle(folder),
        report=report,
        revive=lambda: revive(kits.hub),
    )


@contextmanager
def served(folder: Path, kits: HubKits, report: Callable[[str], None] = lambda _: None) -> Generator[None]:
    """The hub's process runs inside the block and after it; a job that an interrupt leaves behind is ended.

    Raises `StoreError` if another supervisor works in the folder, `ConfigError` if the folder is a copy of another.
    """
    study = study_id(folder)
    with supervised(folder):
        check_forgotten(folder)
        register(kits.hub, study, folder)
        start_hub(kits)
        if count := end_jobs(kits, study):
            report(f"{count} {'job' if count == 1 else 'jobs'} of an earlier 'idiolect hub run' ended")
        try:
            yield
        except KeyboardInterrupt:
            with contextlib.suppress(IdiolectError):
                end_jobs(kits, study)
            raise
