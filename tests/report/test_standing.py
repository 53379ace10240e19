import json
import math
import os
import time
from dataclasses import replace

import pytest

from idiolect.report.standing import GRACE, LONGEST, Watching, arrow, sparkline, standing_of, thinned
from idiolect.study.run.following import Followed, Point, Pulse, Snapshot, end_pulse
from idiolect.study.store.store import DATABASE, Store
from tests.report import stores


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([math.nan], ""),
        ([1.0, 1.0], "▄▄"),
        ([0.0, 7.0], "▁█"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([0.0, math.nan, 7.0, math.inf], "▁ █ "),
        ([0.0, *[6.0] * 4, *[7.0] * 8], "█" * 8),  # of the range of all, not of what is shown
    ],
)
def test_a_sparkline(values, line):
    assert sparkline(values) == line


@pytest.mark.parametrize(
    ("values", "way"),
    [
        ([], ""),
        ([1.0], ""),
        ([math.nan, 1.0], ""),
        ([0.0, 1.0], "↑"),
        ([1.0, 0.0], "↓"),
        ([1.0, 1.0], "→"),
        ([0.0, 1.0, 1.01, 1.0, 1.0, 1.02], "→"),  # hardly, beside what it has come
        ([0.0, 1.0, 0.9, 0.8, 0.7, 0.6], "↓"),
    ],
)
def test_an_arrow(values, way):
    assert arrow(values) == way


LOW = tuple(Point(round, 0.5, 1.0, 1000) for round in (0, 10, 20, 30))
HIGH = tuple(Point(round, 0.5 + round / 100, 1.0, 1000) for round in (0, 10, 20, 30))


def run(method, seed, status="waiting", round=0, course=(), **more):
    courses = {"test": {"local" if method == "local" else "global": course}} if course else {}
    metric = "accuracy" if course else ""
    return Followed(f"c/{method}/seed{seed}", "c", method, method, seed, 40, status, round, metric=metric,
                    courses=courses, **more)  # fmt: skip


RUNS = (
    run("fedavg", 0, "done", 40, LOW, seconds=2.0),
    run("fedavg", 1, "running", 30, LOW, rate=5.0),
    run("local", 0, "done", 40, HIGH),
    run("local", 1, "diverged", 7, message="NaN"),
    run("ditto", 0),
    run("ditto", 1),
)


def standing(alive=True, runs=RUNS):
    pulse = Pulse(time.time(), 9.0, 120.0, 240.0, 10.0) if alive else None
    return standing_of(Snapshot("toy", runs, True, pulse))


def test_a_line_for_each_method():
    seen = standing()
    assert (seen.done, seen.total, seen.speed, seen.left, seen.seconds) == (120.0, 240.0, 10.0, 12.0, 9.0)
    fedavg, local, ditto = seen.lines
    assert (fedavg.status, fedavg.done, fedavg.rounds, fedavg.ended, fedavg.runs) == ("running", 70, 80, 1, 2)
    assert (fedavg.rate, fedavg.left, fedavg.seed, fedavg.metric) == (5.0, 2.0, 1, "accuracy")
    assert fedavg.scores == {"global": [(0, 50.0), (10, 50.0), (20, 50.0), (30, 50.0)]}
    assert fedavg.hints == {"local ahead": "Local ahead by 30 points at round 30 (test accuracy) (seed 0)"}
    assert (local.status, local.done, local.message, local.seed) == ("diverged", 80, "NaN", 0)
    assert (ditto.status, ditto.scores, ditto.left) == ("waiting", {}, None)


def test_without_a_process_at_work_what_is_stored():
    seen = standing(alive=False)
    assert (seen.done, seen.total, seen.speed, seen.alive) == (150, 240, None, False)
    assert [line.status for line in seen.lines] == ["stopped", "diverged", "waiting"]
    assert [line.rate for line in seen.lines] == [0.0, 0.0, 0.0]
    ended = standing(alive=False, runs=RUNS[:1])
    assert ended.over
    assert ended.lines[0].status == "done"


def test_as_json_without_nan():
    broken = replace(RUNS[1], courses={"test": {"global": (*LOW, Point(40, math.nan, math.inf, 10))}})
    plain = standing(runs=(broken,)).to_dict()
    line = json.loads(json.dumps(plain, allow_nan=False))["lines"][0]
    assert line["scores"]["global"][-1] == [40, None]
    assert (line["model"], line["trend"]) == ("global", "→")


@pytest.mark.parametrize("count", [1, LONGEST, LONGEST + 1, 10_000])
def test_a_long_course_is_thinned_and_keeps_its_ends(count):
    course = [(i, float(i)) for i in range(count)]
    short = thinned(course)
    assert len(short) == min(count, LONGEST)
    assert (short[0], short[-1]) == (course[0], course[-1])
    assert [r for r, _ in short] == sorted({r for r, _ in short})


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def begun(folder, methods=("fedavg",)):
    store, exp = Store(folder), stores.experiment([{"name": name} for name in methods], seeds=1)
    store.set_fact("experiment", exp.model_dump(mode="json"))
    stores.start(store, exp, "cell0", "fedavg", 0)
    return store


def pulse(folder):
    Pulse(time.time(), 1.0, 0.0, 20.0).write(folder)


def test_it_waits_for_a_run_and_ends_with_it(tmp_path):
    clock, folder = Clock(), tmp_path / "run"
    watching = Watching(folder, clock)
    clock.now += 10 * GRACE
    watching.look()
    assert not watching.ended()  # it has not begun
    store = begun(folder)
    watching.look()
    assert not watching.ended()  # who made the folder is about to begin
    pulse(folder)
    assert watching.look().alive
    clock.now += 10 * GRACE
    assert not watching.ended()
    store.finish("cell0/fedavg/seed0", "done")
    end_pulse(folder)
    assert watching.look().over
    assert watching.ended()


def test_it_ends_when_the_process_at_work_does(tmp_path):
    begun(tmp_path)
    pulse(tmp_path)
    watching = Watching(tmp_path, Clock())
    watching.look()
    assert not watching.ended()
    end_pulse(tmp_path)
    watching.look()
    assert watching.ended()
    assert not watching.standing.over


def test_a_run_that_was_stopped_long_ago_is_shown_at_once_and_a_new_one_has_a_while(tmp_path):
    begun(tmp_path).close()
    clock = Clock()
    watching = Watching(tmp_path, clock)
    watching.look()
    assert not watching.ended()
    clock.now += GRACE + 5
    watching.look()
    assert watching.ended()
    old = time.time() - 3600
    os.utime(tmp_path / DATABASE, (old, old))
    watching = Watching(tmp_path, clock)
    assert watching.ended()
