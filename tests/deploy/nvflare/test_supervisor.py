"""The supervisor against an engine of a few lines, in its own time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.nvflare.jobs import End
from idiolect.deploy.nvflare.session import LostError, Status
from idiolect.deploy.nvflare.supervisor import DONE, Watch

Event = Callable[["World"], None]


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


def test_too_few_sites_is_one_line_that_names_the_missing() -> None:
    world = World({})
    world.sites = {}
    with pytest.raises(StoreError, match="0 of the 1 sites needed are registered; missing: a, b"):
        world.watch().run()
