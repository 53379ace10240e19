import json
import time
from dataclasses import replace

import pytest

from idiolect.core.errors import StoreError
from idiolect.study.run.following import FILE, FRESH, Follower, Pulse, end_pulse, is_run, read_pulse
from idiolect.study.store.store import DATABASE, Store
from tests.report import stores


@pytest.fixture
def begun(tmp_path):
    """FedAvg has ended with seed 0 and is at work with seed 1; Local waits."""
    store = Store(tmp_path / "run")
    exp = stores.experiment([{"name": "fedavg"}, {"name": "local"}])
    store.set_fact("experiment", exp.model_dump(mode="json"))
    both = ("train", "test")
    stores.finished(store, exp, "cell0", "fedavg", 0, stores.TRAINED, splits=both)
    run = stores.start(store, exp, "cell0", "fedavg", 1, constant={"accuracy": 0.4})
    stores.record(store, run, 0, stores.TRAINED[0], splits=both)
    stores.record(store, run, 10, stores.TRAINED[20], splits=both)
    yield store
    store.close()


def pulse(**runs):
    return Pulse(time.time(), 1.0, 20.0, 80.0, 4.0, runs)


def test_every_run_of_the_experiment_as_it_stands(begun):
    seen = Follower(begun.folder).read()
    assert (seen.name, seen.begun, seen.alive, seen.over) == ("toy", True, False, False)
    assert [(run.method, run.seed, run.status, run.round, run.rounds) for run in seen.runs] == [
        ("fedavg", 0, "done", 20, 20),
        ("fedavg", 1, "running", 10, 20),
        ("local", 0, "waiting", 0, 20),
        ("local", 1, "waiting", 0, 20),
    ]
    at_work = seen.runs[1]
    assert (at_work.metric, at_work.constant) == ("accuracy", 0.4)
    assert [(p.round, round(p.score, 3), p.samples) for p in at_work.course("test", "global")] == [
        (0, 0.1, 40),
        (10, 0.725, 40),
    ]
    assert {*at_work.courses} == {"train", "test"}


def test_the_pulse_says_what_is_between_two_evaluations(begun):
    follower = Follower(begun.folder)
    runs = {"cell0/fedavg/seed1": (13, 2.5), "cell0/local/seed0": (0, 0.0)}
    pulse(**runs).write(begun.folder)
    seen = follower.read()
    assert seen.alive
    assert (seen.runs[1].round, seen.runs[1].rate) == (13, 2.5)
    assert [run.status for run in seen.runs] == ["done", "running", "running", "waiting"]
    end_pulse(begun.folder)
    assert (follower.read().runs[1].round, follower.read().alive) == (10, False)


def test_it_is_over_when_every_run_has_ended_and_nobody_is_at_work(begun):
    exp = stores.experiment([{"name": "fedavg"}, {"name": "local"}])
    follower = Follower(begun.folder)
    begun.finish("cell0/fedavg/seed1", "diverged", "why")
    for seed in (0, 1):
        stores.finished(begun, exp, "cell0", "local", seed, stores.local(seed))
    pulse().write(begun.folder)
    assert not follower.read().over  # the report is being written
    end_pulse(begun.folder)
    seen = follower.read()
    assert seen.over
    assert [(run.status, run.message) for run in seen.runs][1] == ("diverged", "why")


def test_before_a_run_has_begun(tmp_path):
    folder = tmp_path / "to come"
    assert Follower(folder).read().runs == ()
    assert not folder.exists()
    Store(folder).close()
    assert not Follower(folder).read().begun


def test_of_a_sweep_the_runs_that_there_are(tmp_path):
    store, swept = Store(tmp_path), stores.experiment([{"name": "fedavg", "label": "fedavg rate=0.1"}])
    named = stores.experiment([{"name": "fedavg"}])
    store.set_fact("experiment", named.model_dump(mode="json"))
    stores.start(store, swept, "cell0", "fedavg rate=0.1", 0)
    assert [run.method for run in Follower(tmp_path).read().runs] == ["fedavg rate=0.1"]


def test_nothing_is_written(begun):
    before = {path.name: path.read_bytes() for path in begun.folder.iterdir() if path.is_file()}
    Follower(begun.folder).read()
    after = {path.name: path.read_bytes() for path in begun.folder.iterdir() if path.is_file()}
    assert {name: content for name, content in after.items() if not name.endswith("-shm")} == {
        name: content for name, content in before.items() if not name.endswith("-shm")
    }


def test_what_is_no_folder_of_runs(tmp_path):
    assert is_run(tmp_path)
    assert is_run(tmp_path / "absent")
    (tmp_path / "hub.json").write_text(json.dumps({}))
    assert is_run(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").touch()
    assert not is_run(other)
    assert not is_run(other / "notes.txt")
    (other / DATABASE).write_text("no database")
    with pytest.raises(StoreError, match="cannot use"):
        Follower(other).read()


def beat(**more):
    return replace(Pulse(time.time(), 3.0, 10.0, 40.0, 5.0, {"c/local/seed0": (10, 2.5)}, "words"), **more)


def test_it_is_read_as_it_was_written(tmp_path):
    one = beat()
    one.write(tmp_path)
    assert read_pulse(tmp_path) == one
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    end_pulse(tmp_path)
    assert read_pulse(tmp_path) is None
    end_pulse(tmp_path)


def test_one_that_is_not_renewed_is_old():
    assert beat().fresh
    assert not beat(time=time.time() - FRESH - 1).fresh
    assert beat().left == 6.0
    assert beat(speed=None).left is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"time": 1, "runs": {"a": 3}}', b"null"])
def test_what_is_no_pulse_is_none(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    assert read_pulse(tmp_path) is None


def test_a_folder_that_cannot_be_written_to_stops_nothing(tmp_path):
    beat().write(tmp_path / "absent")
    assert list(tmp_path.iterdir()) == []
