"""The supervisor against an engine of a few lines, in its own time."""

import subprocess
import sys
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import idiolect.deploy.nvflare.supervisor as supervisor
from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.nvflare.jobs import End, hub_folder
from idiolect.deploy.nvflare.kits import Kit
from idiolect.deploy.nvflare.register import register_folder
from idiolect.deploy.nvflare.session import LostError, Status
from idiolect.deploy.nvflare.supervisor import DONE, HubKits, Watch, revive, served

Event = Callable[["World"], None]
KIT = Kit(Path("absent"), "server", "hub", "localhost", 8002, "hub")


class World:
    """A hub that does a round a second; events happen at given seconds."""

    def __init__(self, events: dict[float, Event], rounds: int = 20) -> None:
        self.now, self.round, self.rounds = 0.0, 0, rounds
        self.events = dict(sorted(events.items()))
        self.sites = {"a": "1", "b": "1"}
        self.since, self.up, self.runs = -100.0, True, True
        self.state: dict[str, str] = {}
        self.inside: dict[str, dict[str, str]] = {}
        self.running: str | None = None
        self.end: End | None = None
        self.sessions, self.aborted, self.told = 0, list[str](), list[str]()
        self.tokens: dict[str, str] = {}

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for at in [at for at in self.events if at <= self.now]:
            self.events.pop(at)(self)
        if self.running and self.up and self.runs and self.now % 1 == 0:
            self.round += 1
            if self.round >= self.rounds:
                self.finish(DONE)

    def finish(self, state: str) -> None:
        assert self.running
        self.state[self.running], self.running = state, None

    def kill_hub(self) -> None:
        self.up = False

    def start_hub(self) -> None:
        self.up, self.since, self.running = True, self.now, None

    def connect(self) -> "Fake":
        if not self.up:
            raise LostError("the hub does not answer")
        self.sessions += 1
        return Fake(self)

    def watch(self, **more: object) -> Watch:
        return Watch(
            self.connect,
            lambda n: Path(f"job-{n}"),
            ["a", "b"],
            1,
            lambda: self.round,
            lambda: self.end,
            self.told.append,
            clock=lambda: self.now,
            sleep=self.sleep,
            **more,  # pyright: ignore[reportArgumentType]
        )


class Fake:
    def __init__(self, world: World) -> None:
        self.world, self.open = world, True

    def _up(self) -> World:
        if not (self.world.up and self.open):
            self.close()
            raise LostError("the hub does not answer")
        return self.world

    def status(self) -> Status:
        world = self._up()
        return Status(dict(world.sites), (world.running,) if world.running else (), world.since)

    def submit(self, job: Path, token: str) -> str:
        world = self._up()
        if token in world.tokens:
            return world.tokens[token]
        assert world.running is None, "two jobs at once"
        world.running = world.tokens[token] = job.name
        world.state[job.name] = "RUNNING"
        world.inside[job.name] = {**dict.fromkeys(world.sites, "OK"), "server": "OK"}
        return job.name

    def job_status(self, job: str) -> str:
        return self._up().state[job]

    def job_sites(self, job: str) -> dict[str, str]:
        return self._up().inside[job]

    def abort(self, job: str) -> None:
        world = self._up()
        world.aborted.append(job)
        world.runs = True
        world.finish("FINISHED:ABORTED")

    def close(self) -> None:
        if self.open:
            self.open = False
            self.world.sessions -= 1


def test_an_undisturbed_run_takes_one_job_and_closes_its_session() -> None:
    world = World({})
    assert world.watch().run() == 1
    assert (world.sessions, world.aborted, world.round) == (0, [], 20)


def test_a_dead_worker_ends_the_job_and_another_goes_on() -> None:
    world = World({5.5: lambda w: w.finish("FINISHED:EXECUTION_EXCEPTION")})
    assert world.watch().run() == 2
    assert world.told[1] == "the job has ended as FINISHED:EXECUTION_EXCEPTION; a new job continues from round 5"


def test_a_job_that_could_not_say_why_it_ended_is_told_by_the_obstacle() -> None:
    world = World({3: lambda w: w.finish("FINISHED:EXECUTION_EXCEPTION")})
    assert world.watch(obstacle=lambda: "the disk is full").run() == 2
    assert any(line.startswith("the disk is full; a new job continues from round") for line in world.told)


def test_a_dead_hub_leaves_a_job_that_says_running_for_ever_and_it_is_forgotten() -> None:
    world = World({5.5: World.kill_hub, 9.5: World.start_hub})
    assert world.watch().run() == 2
    assert world.state == {"job-1": "RUNNING", "job-2": DONE}
    assert (world.aborted, world.sessions) == ([], 0)


def test_a_job_that_is_ending_is_none_that_was_lost() -> None:
    """For some seconds the store says RUNNING and nobody runs it: without a restart of the hub that is an end."""

    def ending(world: World) -> None:
        world.running = None

    def ended(world: World) -> None:
        world.state["job-1"] = DONE

    world = World({5.5: ending, 12.5: ended})
    assert world.watch().run() == 1
    assert list(world.state) == ["job-1"]


def test_a_lost_session_is_opened_anew_and_the_job_is_not_submitted_twice() -> None:
    def lose(world: World) -> None:
        world.up = False

    def find(world: World) -> None:
        world.up = True

    world = World({4.5: lose, 7.5: find})
    assert world.watch().run() == 1
    assert world.sessions == 0


def test_a_site_that_was_started_again_gets_a_job_it_is_in() -> None:
    def again(world: World) -> None:
        world.sites["b"] = "2"

    world = World({5.5: again})
    assert world.watch().run() == 2
    assert world.aborted == ["job-1"]
    assert world.told[1].startswith("b registered again")


def test_a_site_that_comes_late_gets_a_job_it_is_in() -> None:
    def come(world: World) -> None:
        world.sites["b"] = "7"

    world = World({65: come}, rounds=30)
    world.sites.pop("b")
    assert world.watch().run() == 2
    assert set(world.inside["job-1"]) == {"a", "server"}
    assert set(world.inside["job-2"]) == {"a", "b", "server"}


def test_a_job_is_submitted_when_all_wanted_sites_are_there() -> None:
    def come(world: World) -> None:
        world.sites["b"] = "1"

    world = World({3.5: come})
    world.sites.pop("b")
    assert world.watch().run() == 1
    assert set(world.inside["job-1"]) == {"a", "b", "server"}


def test_jobs_without_a_new_round_are_given_up_with_the_last_reason() -> None:
    world = World({})
    world.runs = False

    def sleep(seconds: float) -> None:
        world.now += seconds
        if world.running and world.now % 3 == 0:
            world.end = End(world.running, "2 of the 3 sites needed have answered", False)
            world.finish("FINISHED:EXECUTION_EXCEPTION")

    watch = world.watch()
    watch.sleep = sleep
    with pytest.raises(StoreError, match=r"3 jobs in a row .* the last: 2 of the 3 sites needed"):
        watch.run()
    assert len(watch.jobs) == 3
    assert world.sessions == 0


def test_what_every_job_would_end_with_ends_the_run_at_once() -> None:
    def refuse(world: World) -> None:
        world.end = End("job-1", "unknown method 'fedagv'", True)
        world.finish("FINISHED:EXECUTION_EXCEPTION")

    world = World({2.5: refuse})
    with pytest.raises(StoreError, match="unknown method 'fedagv'"):
        world.watch().run()
    assert world.sessions == 0


def test_a_job_whose_rounds_are_done_but_does_not_end_is_ended() -> None:
    def done(world: World) -> None:
        world.runs, world.end = False, End("job-1", "", False)

    world = World({5.5: done})
    assert world.watch().run() == 1
    assert world.aborted == ["job-1"]
    assert world.now > 30


def test_a_hub_that_stays_away_is_one_line() -> None:
    world = World({5.5: World.kill_hub})
    with pytest.raises(StoreError, match="does not answer"):
        world.watch().run()
    assert 120 < world.now < 140


def test_a_hub_that_has_died_is_started_again_by_the_supervisor() -> None:
    world = World({5.5: World.kill_hub})

    def revive() -> str:
        if world.up:
            return ""
        world.start_hub()
        return "the hub's process has died; it is started again"

    assert world.watch(revive=revive).run() == 2
    assert "the hub's process has died; it is started again" in world.told
    assert world.state == {"job-1": "RUNNING", "job-2": DONE}
    assert world.now < 60


def test_a_hub_that_was_stopped_ends_the_run_at_once() -> None:
    def revive() -> str:
        raise ConfigError("the hub's process has been stopped")

    world = World({5.5: World.kill_hub})
    with pytest.raises(ConfigError, match="has been stopped"):
        world.watch(revive=revive).run()
    assert world.now < 10
    assert world.sessions == 0


def test_a_hub_that_cannot_be_started_is_tried_until_the_limit() -> None:
    world = World({5.5: World.kill_hub})
    with pytest.raises(StoreError, match="does not answer"):
        world.watch(revive=lambda: "the hub's process has died and cannot be started: port 8002 is taken").run()
    assert 120 < world.now < 140


class Jobs:
    """A hub's session with jobs of two studies; aborting takes a look more."""

    def __init__(self, jobs: dict[str, str], zombies: Collection[str] = ()) -> None:
        self.jobs, self.zombies, self.aborted, self.lost = jobs, zombies, list[str](), 0

    @contextmanager
    def session(self, kit: object) -> Generator["Jobs"]:
        if self.lost:
            self.lost -= 1
            raise LostError("the hub does not answer")
        yield self

    def unfinished(self, prefix: str) -> tuple[str, ...]:
        return tuple(job for job, name in self.jobs.items() if name.startswith(prefix))

    def status(self) -> Status:
        runs = tuple(job for job in self.jobs if job not in self.zombies)
        for job in self.aborted:
            if job not in self.zombies:
                self.jobs.pop(job, None)
        return Status({}, runs, 0.0)

    def abort(self, job: str) -> None:
        self.aborted.append(job)


HEART, LUNG = "heart-00000001", "lung-00000001"


def ended(monkeypatch: pytest.MonkeyPatch, jobs: Jobs) -> int:
    monkeypatch.setattr(supervisor, "session", jobs.session)
    monkeypatch.setattr(supervisor, "running", lambda kit: 1)
    monkeypatch.setattr(supervisor.time, "sleep", lambda seconds: None)
    return supervisor.end_jobs(HubKits(KIT, KIT), HEART)


def test_jobs_of_a_killed_supervisor_are_ended_and_other_studies_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = Jobs({"1": f"{HEART}.1", "2": f"{LUNG}.1", "3": f"{HEART}.2", "4": f"{HEART}2.1"}, zombies=["3"])
    jobs.lost = 3  # the hub's process has just been started
    assert ended(monkeypatch, jobs) == 1
    assert jobs.aborted == ["1", "3"]
    assert {*jobs.jobs} == {"2", "3", "4"}


def test_without_such_jobs_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs({"2": f"{LUNG}.1"})
    assert ended(monkeypatch, jobs) == 0
    assert jobs.aborted == []


def hub_folder_of(folder: Path, study: str = HEART) -> Path:
    folder.mkdir()
    values = {"study": study, "experiment": {}, "kind": None, "sites": ("a",)}
    HubConfig.model_validate(values).save(folder)
    return folder


def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "start_hub", lambda kits: True)
    monkeypatch.setattr(supervisor, "end_jobs", lambda kits, study: 2)


def test_a_second_supervisor_on_a_folder_is_refused_and_a_killed_one_leaves_no_lock(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    quiet(monkeypatch)
    hub, kits, told = hub_folder_of(tmp_path / "hub"), HubKits(kit_in(tmp_path / "kit"), KIT), list[str]()
    code = (
        "import sys, time; from pathlib import Path\n"
        "from idiolect.deploy.hub.supervised import supervised\n"
        "with supervised(Path(sys.argv[1])):\n    print('in', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(hub)], stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"in\n"
    with pytest.raises(StoreError, match=r"another 'idiolect hub run' works in '.*hub'"), served(hub, kits):
        pass
    other.kill()
    other.wait()
    with served(hub, kits, told.append):
        pass
    assert told == ["2 jobs of an earlier 'idiolect hub run' ended"]


def test_two_studies_share_a_hub_and_a_copy_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    quiet(monkeypatch)
    kits = HubKits(kit_in(tmp_path / "kit"), KIT)
    heart, lung = hub_folder_of(tmp_path / "heart"), hub_folder_of(tmp_path / "lung", LUNG)
    with served(heart, kits), served(lung, kits):
        monkeypatch.setenv("IDIOLECT_HUB", str(register_folder(kits.hub)))
        assert (hub_folder(HEART), hub_folder(LUNG)) == (heart, lung)
    copy = hub_folder_of(tmp_path / "copy")
    with pytest.raises(ConfigError, match=r"and '.*copy' is a copy of it"), served(copy, kits):
        pass
    heart.rename(tmp_path / "moved")
    with served(tmp_path / "moved", kits):
        assert hub_folder(HEART) == tmp_path / "moved"


def test_nothing_runs_in_a_folder_where_forgetting_was_interrupted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    quiet(monkeypatch)
    hub = hub_folder_of(tmp_path / "hub")
    (hub / "forgetting.json").write_text('{"site": "a", "restarts": [], "starts": {}, "schema": false}')
    with pytest.raises(StoreError, match="finish it: idiolect hub forget a"):
        served(hub, HubKits(kit_in(tmp_path / "kit"), KIT)).__enter__()


def kit_in(folder: Path) -> Kit:
    folder.mkdir()
    return replace(KIT, folder=folder)


def test_the_hub_is_started_again_only_if_it_has_died(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kit, started = kit_in(tmp_path / "kit"), list[Kit]()
    monkeypatch.setattr(supervisor, "_start", started.append)
    with pytest.raises(ConfigError, match="has been stopped"):  # by `hub stop`, which leaves no record
        revive(kit)
    (kit.folder / "process.json").write_text('{"pid": 999999999, "created": 1.0}')
    assert "started again" in revive(kit)
    assert started == [kit]

    def fail(kit: Kit) -> None:
        raise StoreError("port 8002 is taken")

    monkeypatch.setattr(supervisor, "_start", fail)
    assert revive(kit) == "the hub's process has died and cannot be started: port 8002 is taken"
    monkeypatch.setattr(supervisor, "running", lambda kit: 7)
    assert revive(kit) == ""


def test_too_few_sites_is_one_line_that_names_the_missing() -> None:
    world = World({})
    world.sites = {}
    with pytest.raises(StoreError, match="0 of the 1 sites needed are registered; missing: a, b"):
        world.watch().run()
