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
from idiolect.deploy.hub.run import progress
from idiolect.deploy.nvflare.jobs import End, clean_jobs, obstacle, read_end, write_job
from idiolect.deploy.nvflare.kits import HUB_FOLDER, Kit, certificate, harden, read_kit, require_kind
from idiolect.deploy.nvflare.processes import running, start
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
    it could not write; report: gets a line for each event.
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


def start_hub(kits: HubKits, folder: Path) -> bool:
    """Harden and start the hub's process for this folder; False if it runs already.

    Raises `ConfigError` if it runs for another folder, `StoreError` if it cannot run.
    """
    harden(kits.hub.folder)
    restrict(kits.lead.folder)
    pid = running(kits.hub)
    if pid is None:
        clean_jobs(kits.hub)
        start(kits.hub, {HUB_FOLDER: str(folder.absolute())})
        return True
    import psutil

    with contextlib.suppress(psutil.Error):
        other = psutil.Process(pid).environ().get(HUB_FOLDER, "")
        if Path(other) != folder.absolute():
            raise ConfigError(
                f"the hub's process {pid} works in '{other}'; end it with: idiolect hub stop --kit {kits.hub.folder}"
            )
    return False


def end_jobs(kits: HubKits) -> None:
    """End what runs at the hub: jobs of a supervisor that is gone. Raises `StoreError` if the hub never answers."""
    end = time.monotonic() + FIRST
    while True:
        try:
            with session(kits.lead) as opened:
                for job in opened.status().running:
                    opened.abort(job)
                return
        except LostError:
            if running(kits.hub) is None or time.monotonic() > end:
                raise
            time.sleep(0.5)


def watch_of(folder: Path, kits: HubKits, report: Callable[[str], None], query: str = "") -> Watch:
    """The supervisor of a hub's folder. A job needs as many sites as a round of all sites needs answers.

    query: the id of a query that the job asks; "" for a job that trains.
    """
    config, asked = HubConfig.load(folder), {"run": query} if query else {}
    least = config.needed(len(config.present))
    return Watch(
        connect=lambda: open_session(kits.lead),
        job=lambda number: write_job(folder / "jobs", f"job-{number}", {"folder": ".", **asked}, least),
        wanted=config.present,
        least=least,
        progress=lambda: progress(folder)[0],
        ended=lambda: read_end(folder),
        obstacle=lambda: obstacle(folder),
        report=report,
    )


@contextmanager
def served(folder: Path, kits: HubKits) -> Generator[None]:
    """The hub's process runs inside the block and after it; a job that an interrupt leaves behind is ended."""
    if not start_hub(kits, folder):
        end_jobs(kits)
    try:
        yield
    except KeyboardInterrupt:
        with contextlib.suppress(IdiolectError):
            end_jobs(kits)
        raise
