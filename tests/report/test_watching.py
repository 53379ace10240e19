import os
import time

from idiolect.report.watching import GRACE, Watching
from idiolect.study.run.following import Pulse, end_pulse
from idiolect.study.store.store import DATABASE, Store
from tests.report import stores


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
