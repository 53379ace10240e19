"""Months in minutes: studies one after the other and two at once on the same four sites, and all that dies there.

Everything runs as an administrator runs it: `idiolect hub run` and `idiolect site run`, started again after a failure
as systemd would by the units of `deploy.service`. There is no other step by hand.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np
import psutil
import pytest

pytest.importorskip("nvflare")

from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.journal import HubState
from idiolect.deploy.hub.plan import save_hub
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import read_message
from idiolect.deploy.nvflare.kits import harden
from idiolect.deploy.nvflare.processes import end_leftovers, free_port, running, workers
from idiolect.deploy.nvflare.provision import Kits, provision
from idiolect.deploy.site.approvals import approve
from idiolect.deploy.site.state import state_of
from idiolect.deploy.study import Study
from idiolect.deploy.this_machine import make_site
from idiolect.deploy.transport import InProcess
from idiolect.study.spec.experiment import Experiment
from idiolect.study.store.store import Store
from tests.deploy.federation import Silent, data_of, experiment_of, hub_of, kept_file, participation, sites_of

KILLS = int(os.environ.get("IDIOLECT_KILLS", "20"))
ROUNDS = int(os.environ.get("IDIOLECT_ROUNDS", "60"))
"""Of each study. A kill costs up to 20 s, and each phase waits for its share of them."""
LIMIT = 300.0
"""Seconds without a new round of any study after which the test fails."""
DATA = data_of(4)
NAMES = [*DATA.clients]
WHAT = ("trainer", "worker", "site", "site run", "hub's job", "hub", "supervisor")
METHODS = ("scaffold", "ditto", "fedavg", "pfedme", "scaffold")


class Service:
    """A command that is started again whenever it fails or is killed: what systemd does with `Restart=on-failure`."""

    def __init__(self, log: Path, *arguments: str) -> None:
        self.command, self.log, self.starts, self.status = [*arguments], log, 0, None
        self.process: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping:
            with self.log.open("ab") as out:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "idiolect", *self.command],
                    stdout=out,
                    stderr=out,
                    stdin=subprocess.DEVNULL,
                )
            self.starts += 1
            self.status = self.process.wait()
            if self.status == 0:
                return
            time.sleep(1)

    @property
    def runs(self) -> bool:
        """Whether it has not ended by itself."""
        return self._thread.is_alive()

    def stop(self) -> None:
        self._stopping = True
        if self.process is not None:
            self.process.terminate()
        self._thread.join(60)


class Months:
    """A hub, four sites, and studies, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kits: Kits = provision(folder / "kits", "fed", NAMES, free_port())
        self.hubs, self.services = dict[str, Path](), dict[str, Service]()
        for client, name in enumerate(NAMES):
            harden(self.kits.sites[name].folder)
            make_site(self.kits.sites[name].site, name, DATA, client)

    def study(self, name: str, experiment: Experiment) -> None:
        hub = self.folder / name
        hub.mkdir()
        values = {"experiment": experiment.model_dump(mode="json"), "kind": Kind.of(DATA).to_dict(), "sites": NAMES}
        save_hub(hub, HubConfig.model_validate({**values, "deadline": 10.0, "quorum": 1}))
        self.hubs[name] = hub
        for site in NAMES:
            approve(self.kits.sites[site].site, site, Study.load(hub / "study.json"))

    def open(self) -> None:
        for name, kit in self.kits.sites.items():
            self.services[name] = Service(self.folder / f"{name}.log", "site", "run", str(kit.folder))

    def begin(self, *studies: str) -> None:
        kits = "--kit", str(self.kits.hub.folder), "--admin", str(self.kits.lead.folder)
        for name in studies:
            self.services[name] = Service(self.folder / f"{name}.log", "hub", "run", str(self.hubs[name]), *kits)

    def rounds(self) -> int:
        return sum(len({line["round"] for line in participation(hub)}) for hub in self.hubs.values())

    def close(self) -> None:
        for service in self.services.values():
            service.stop()
        for kit in (self.kits.hub, *self.kits.sites.values()):
            end_leftovers(kit)


class Killer:
    """Kills one thing after the other with SIGKILL, each after a new round of a study."""

    def __init__(self, months: Months, kills: int) -> None:
        self.months, self.rng = months, np.random.default_rng(0)
        order = cycle(WHAT)
        self.plan = [next(order) for _ in range(kills)]
        self.done = list[str]()

    def targets(self, what: str) -> list[int]:
        months, kits = self.months, self.months.kits
        site = kits.sites[str(self.rng.choice(NAMES))]
        if what == "site run":
            return self._command(months.services[site.name])
        if what == "supervisor":
            return self._command(months.services[str(self.rng.choice(self.running()))])
        if what in ("site", "hub"):
            return self._some([running(site if what == "site" else kits.hub)])
        pids = workers(kits.hub if what == "hub's job" else site)
        is_trainer = {pid: "idiolect.deploy.site.child" in _line(pid) for pid in pids}
        return self._some([pid for pid in pids if is_trainer[pid] == (what == "trainer")])

    def _command(self, service: Service) -> list[int]:
        process = service.process
        return [] if process is None or process.poll() is not None else [process.pid]

    def _some(self, pids: list[int | None]) -> list[int]:
        found = [pid for pid in pids if pid is not None]
        return [int(self.rng.choice(found))] if found else []

    def running(self) -> list[str]:
        months = self.months
        return [name for name in months.hubs if name in months.services and months.services[name].runs]

    def phase(self, until: int) -> None:
        """Kill until so many are dead in all, and wait for the studies that run to end by themselves."""
        before, since = self.months.rounds(), time.monotonic()
        while running := self.running():
            now = self.months.rounds()
            if now > before:
                since = time.monotonic()
            assert time.monotonic() - since < LIMIT, f"no new round of {running} after {self.done[-1:]}"
            if now > before and len(self.done) < until:
                time.sleep(float(self.rng.uniform(0, 1)))
                before = self.months.rounds()
                self.kill()
            elif len(self.done) >= until:
                before = now
            time.sleep(0.1)

    def kill(self) -> None:
        what = self.plan[len(self.done)]
        for pid in self.targets(what):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.done.append(what)
                print(f"{time.monotonic():.0f}: killed {what} {pid} after {self.months.rounds()} rounds", flush=True)


def _line(pid: int) -> list[str]:
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []


@pytest.fixture
def months(tmp_path: Path):
    made = Months(tmp_path)
    try:
        yield made
    finally:
        made.close()


def states(hub: Path, run: str, site_of: Callable[[str], Path]) -> dict[str, dict[str, bytes]]:
    """The shared state, and each site's private one after the last round in which the hub used its answer."""
    shared = HubState.load(hub / "checkpoints" / f"{run.replace('/', '__')}.hub", run)
    assert shared is not None
    found = {"hub": shared.vectors}
    for name in NAMES:
        kept = kept_file(site_of(name), run, Study.load(hub / "study.json").id)
        messages = [read_message(kept), read_message(kept.with_name("prepared.msg"))]
        rounds = {message.header["round"]: message for message in messages if message is not None}
        found[name] = state_of(rounds[shared.used.get(name, -1)])
    return {place: {leaf: v.tobytes() for leaf, v in vectors.items()} for place, vectors in found.items()}


@pytest.mark.second
@pytest.mark.skipif(os.environ.get("IDIOLECT_LONG") != "1", reason="takes long: IDIOLECT_LONG=1 runs it")
def test_studies_in_a_row_and_at_once_survive_every_kill_and_are_replays_of_their_participation(months, tmp_path):
    names = [f"study-{number}" for number in range(1, 6)]
    for name, method in zip(names, METHODS, strict=True):
        months.study(name, experiment_of([method], rounds=ROUNDS, eval_every=ROUNDS))
    months.open()
    killer = Killer(months, KILLS)
    for phase, studies in enumerate((names[:1], names[1:2], names[2:3], names[3:]), start=1):
        months.begin(*studies)
        killer.phase(KILLS * phase // 4)
    assert len(killer.done) >= KILLS, f"only {Counter(killer.done)}: give the studies more rounds"
    for name, method in zip(names, METHODS, strict=True):
        run, hub = f"t/{method}/seed0", months.hubs[name]
        with Store(hub, create=False) as store:
            assert [row.status for row in store.runs()] == ["done"]
        answered = {line["round"]: line["answered"] for line in participation(hub)}
        assert [*answered] == [*range(ROUNDS)]
        absent = {(run, round): [site for site in NAMES if site not in of] for round, of in answered.items()}
        replay = tmp_path / "replay" / name
        sites = sites_of(replay, DATA)
        experiment = experiment_of([method], rounds=ROUNDS, eval_every=ROUNDS)
        run_hub(hub_of(replay / "hub", experiment, DATA, quorum=1, patience=10**6), Silent(InProcess(sites), absent))
        mine = states(hub, run, lambda site: months.kits.sites[site].site)
        assert mine == states(replay / "hub", run, lambda site, at=sites: at[site].folder), name
    for name in NAMES:  # the sites still run, as after any study
        assert months.services[name].runs
