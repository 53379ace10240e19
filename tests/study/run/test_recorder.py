"""What keeps a run: its metrics first, then its checkpoint, and the round that validation data chose."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.metrics.registry import METRICS
from idiolect.runtime.checkpoint import Checkpoint, load_checkpoint, plain, save_checkpoint
from idiolect.runtime.evaluate import ClientScores
from idiolect.runtime.private_rows import PrivateRows
from idiolect.runtime.round import State
from idiolect.study.run import recorder as module
from idiolect.study.run.recorder import StoreRecorder, Together, everywhere
from idiolect.study.run.recording import Evaluated, Schedule
from idiolect.study.store.store import RunRow, Store
from idiolect.study.store.summary import summarise

ROW = RunRow("c/x/seed0", "c", "x", "fedavg", 0, {}, "config", "data", {}, "running", 0, 0.0, 0.0, "")
SCHEDULE = Schedule(6, eval_every=2, splits=("validation", "test"))
ACCURACY, MSE = METRICS["accuracy"], METRICS["mse"]


def state(round, private=None):
    params = {"w": jnp.full(3, float(round))}
    return State(params, private, jnp.asarray(round, jnp.int32), jax.random.key(7), jnp.zeros(3, jnp.int32))


LIKE = state(0)


def scores(split, pooled, model="global", metric=ACCURACY):
    """Over all samples the score is as given; each client's says the opposite."""
    each = np.full(2, 1.0 - pooled)
    return ClientScores(model, split, np.asarray([4, 4]), each, {metric.name: each}, {metric.name: pooled})


def evaluated(round, *told, metric=ACCURACY, like=state):
    told = told or (scores("validation", 0.5), scores("test", 0.5))
    results = [(s, summarise(s, metric)) for s in told]
    return Evaluated(round, results, like(round), 10.0 + round, 1.0 + round, {"gap": float(round)})


class Clock:
    """A clock that goes on by `tick` whenever it is read."""

    def __init__(self):
        self.now, self.tick = 1000.0, 0.0

    def monotonic(self):
        self.now += self.tick
        return self.now - self.tick


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "out") as store:
        store.start(ROW)
        yield store


def recorder(store, metric=None, schedule=SCHEDULE, **changes):
    return StoreRecorder(store, replace(ROW, **changes), schedule, metric)


def kept_round(store):
    found = recorder(store).restore(LIKE)
    return None if found is None else int(found[0].round)


def test_metrics_are_recorded_with_their_times_and_the_state_with_its_own(store):
    its = recorder(store)
    its.keep(evaluated(0), last=False)
    its.keep(evaluated(2), last=True)
    row = store.run(ROW.id)
    assert (row.round, row.seconds, row.compile_seconds) == (2, 12.0, 3.0)
    assert store.diagnostics(ROW.id) == {"gap": [(0, 0.0), (2, 2.0)]}
    assert store.scores(ROW.id, 2, "global", "test").pooled["accuracy"] == 0.5
    found, seconds, compiling = recorder(store).restore(LIKE)
    assert (int(found.round), seconds, compiling) == (2, 12.0, 3.0)
    np.testing.assert_array_equal(found.shared["w"], [2, 2, 2])


def test_where_the_metrics_cannot_be_recorded_no_state_is_kept(store):
    store._db.execute("CREATE TRIGGER no BEFORE INSERT ON evaluations BEGIN SELECT RAISE(ABORT, 'no'); END")
    with pytest.raises(StoreError):
        recorder(store).keep(evaluated(0), last=True)
    assert not store.checkpoint_path(ROW.id).exists()


def test_states_are_kept_every_few_seconds_and_at_the_end(store, clock):
    its = recorder(store)
    its.keep(evaluated(0), last=False)
    assert kept_round(store) == 0
    clock.now += 4.9
    its.pause(state(1), 1.0, 1.0)
    its.keep(evaluated(2), last=False)
    assert store.evaluated(ROW.id) == [0, 2]
    assert int(np.asarray(load_checkpoint(its.path, LIKE, its.hash).state.round)) == 0
    clock.now += 0.1
    its.pause(state(3), 13.0, 4.0)
    found = load_checkpoint(its.path, LIKE, its.hash)
    assert (int(found.state.round), found.seconds, found.compile_seconds) == (3, 13.0, 4.0)
    its.keep(evaluated(4), last=False)
    its.keep(evaluated(6), last=True)
    assert kept_round(store) == 6


def test_states_that_take_long_to_keep_take_a_twentieth_of_the_time(store, clock):
    its = recorder(store)
    clock.tick = 1.0
    its.pause(state(1), 0.0, 0.0)  # from second 1000 to 1001: not again for 20 seconds
    clock.tick = 0.0
    for now, round in ((1020.9, 1), (1021.0, 3)):
        clock.now = now
        its.pause(state(3), 0.0, 0.0)
        assert int(load_checkpoint(its.path, LIKE, its.hash).state.round) == round


def test_evaluations_beyond_the_state_are_forgotten(store, clock):
    its = recorder(store)
    for round in (0, 2, 4, 6):
        its.keep(evaluated(round), last=round == 2)
    assert kept_round(store) == 2
    assert store.evaluated(ROW.id) == [0, 2]


def test_without_a_state_every_evaluation_is_forgotten(store):
    recorder(store).keep(evaluated(0), last=True)
    store.finish(ROW.id, "diverged", "why")
    store.checkpoint_path(ROW.id).unlink()
    assert recorder(store).restore(LIKE) is None
    assert store.evaluated(ROW.id) == []
    assert (store.run(ROW.id).status, store.run(ROW.id).message) == ("running", "")


@pytest.mark.parametrize(
    ("schedule", "lost", "goes_on"),
    [(SCHEDULE, 0, False), (SCHEDULE, 2, False), (SCHEDULE, 4, False), (SCHEDULE, 6, True),
     (replace(SCHEDULE, initial=False), 0, True), (replace(SCHEDULE, eval_every=4), 2, True)],
)  # fmt: skip
def test_a_state_whose_evaluations_were_lost_is_computed_again(store, schedule, lost, goes_on):
    its = recorder(store, schedule=schedule)
    for round in (0, 2, 4):
        if round != lost:
            its.keep(evaluated(round), last=False)
    save_checkpoint(its.path, Checkpoint(state(4), 1.0, 1.0), its.hash)
    found = recorder(store, schedule=schedule).restore(LIKE)
    assert (found is not None) == goes_on
    assert bool(store.evaluated(ROW.id)) == goes_on


def test_private_states_of_a_run_that_starts_again_are_forgotten(store, tmp_path):
    rows = PrivateRows(tmp_path / "rows", lambda clients: 1.0 * clients[:, None])
    for lost in (False, True):
        rows.write(np.asarray([3]), np.asarray([[7.0]]))
        recorder(store).keep(evaluated(0, like=lambda round: state(round, rows)), last=True)
        if lost:
            store._db.execute("DELETE FROM evaluations")
        found = recorder(store).restore(state(0, rows))
        assert (found is None) == lost
        np.testing.assert_array_equal(rows.read(np.asarray([3])), [[3.0 if lost else 7.0]])


@pytest.mark.parametrize("changes", [{"config_hash": "other"}, {"data_hash": "other"}])
def test_a_state_of_another_run_is_refused(store, changes):
    recorder(store).keep(evaluated(0), last=True)
    with pytest.raises(StoreError, match="belongs to another configuration or other data"):
        recorder(store, **changes).restore(LIKE)


def test_a_round_is_there_where_all_of_its_splits_are(store):
    its = recorder(store)
    its.keep(evaluated(2), last=True)
    assert its.has(2, ("validation",))
    assert its.has(2, ("test", "validation"))
    assert not its.has(2, ("train",))
    assert not its.has(2, ("test", "train"))
    assert not its.has(0, ("test",))


@pytest.mark.parametrize(
    ("metric", "course", "best"),
    [(ACCURACY, (0.5, 0.75, 0.75, 0.25), 2), (MSE, (0.5, 0.25, 0.25, 0.75), 2), (ACCURACY, (0.5, 0.25, 0.5, 0), 0)],
)
def test_validation_data_choose_the_first_of_the_best_rounds(store, metric, course, best):
    its = recorder(store, metric)
    for round, value in zip((0, 2, 4, 6), course, strict=True):
        told = scores("validation", value, metric=metric), scores("test", round / 6, metric=metric)
        its.keep(evaluated(round, *told, metric=metric), last=round == 6)
    chosen = its.chosen("global", state(6))
    assert int(chosen.round) == best
    np.testing.assert_array_equal(chosen.shared["w"], [best] * 3)
    assert its.best_path("global").name == "c__x__seed0.best-global.eqx"
    assert its.best_path("global").parent == store.checkpoint_path(ROW.id).parent


def test_each_model_has_its_own_best_round(store):
    its = recorder(store, ACCURACY)
    for round, (one, other) in {0: (0.2, 0.8), 2: (0.6, 0.4)}.items():
        its.keep(evaluated(round, scores("validation", one, "a"), scores("validation", other, "b")), last=False)
    assert [int(its.chosen(name, state(6)).round) for name in "ab"] == [2, 0]


@pytest.mark.parametrize(("value", "best"), [(0.75, 2), (0.875, 4)])
def test_a_run_that_goes_on_knows_its_best_round(store, value, best):
    its = recorder(store, ACCURACY)
    for round, score in {0: 0.5, 2: 0.75}.items():
        its.keep(evaluated(round, scores("test", 1.0), scores("validation", score)), last=round == 2)
    its = recorder(store, ACCURACY)
    its.restore(LIKE)
    its.keep(evaluated(4, scores("validation", value)), last=True)
    assert int(its.chosen("global", state(6)).round) == best


def test_without_a_choice_the_last_state_is_taken(store):
    its, last = recorder(store), state(6)
    its.keep(evaluated(0), last=True)
    assert its.chosen("global", last) is last
    assert not its.best_path("global").exists()
    with pytest.raises(StoreError, match=r"best-global\.eqx is missing; delete .*seed0\.eqx to start"):
        recorder(store, ACCURACY).chosen("global", last)


def test_together_is_what_the_leader_keeps(store, clock):
    together = Together(recorder(store))
    assert together.restore(LIKE) is None
    together.keep(evaluated(0), last=False)
    together.keep(evaluated(2), last=True)
    assert together.has(2, ("test",)) is True
    assert together.has(4, ("test",)) is False
    found, seconds, compiling = together.restore(LIKE)
    assert (int(found.round), seconds, compiling) == (2, 12.0, 3.0)
    clock.now += 5
    together.pause(state(3), 13.0, 4.0)
    assert [together.restore(LIKE)[i] for i in (1, 2)] == [13.0, 4.0]
    assert everywhere(found) is found


def test_another_process_goes_on_from_the_leaders_state(monkeypatch):
    other = Together(None)
    assert other.restore(LIKE) is None
    assert other.has(0, ("test",)) is False
    other.keep(evaluated(0), last=True)
    other.pause(LIKE, 1.0, 1.0)
    told = [np.asarray(True), np.asarray([12.0, 3.0]), plain(state(4)), np.asarray(True)]
    monkeypatch.setattr(module, "agreed", lambda mine: told.pop(0))
    monkeypatch.setattr(module, "jax", SimpleNamespace(process_count=lambda: 2, tree=jax.tree))
    found, seconds, compiling = other.restore(LIKE)
    assert (int(found.round), seconds, compiling) == (4, 12.0, 3.0)
    assert jax.random.key_data(found.seed).tolist() == jax.random.key_data(LIKE.seed).tolist()
    assert other.has(2, ("test",)) is True
