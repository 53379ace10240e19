from dataclasses import FrozenInstanceError, replace
from inspect import signature

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.metrics.registry import METRICS
from idiolect.runtime.private_rows import PrivateRows
from idiolect.runtime.round import State
from idiolect.study.run.recorder import StoreRecorder, Together
from idiolect.study.run.recording import Best, Evaluated, Memory, Progress, Recorder, Schedule
from idiolect.study.store.summary import summarise
from tests.report.stores import scored


def state(round, private=None):
    return State(
        {"w": jnp.ones(2)}, private, jnp.asarray(round, jnp.int32), jax.random.key(0), jnp.zeros(3, jnp.int32)
    )


def evaluated(round):
    scores = scored("global", "test", np.asarray([0.25, 0.5]), np.asarray([4, 4]))
    return Evaluated(round, [(scores, summarise(scores, METRICS["accuracy"]))], state(round), 2.0, 0.5, {"gap": 1.0})


def test_memory_keeps_the_very_evaluations_in_their_order():
    memory, rounds = Memory(), [evaluated(0), evaluated(2), evaluated(5)]
    for kept in rounds:
        memory.keep(kept, last=kept.round == 5)
    assert len(memory.history) == 3
    assert all(one is other for one, other in zip(memory.history, rounds, strict=True))


def test_two_memories_share_nothing():
    first, second = Memory(), Memory()
    first.keep(evaluated(0), last=True)
    assert len(first.history) == 1
    assert second.history == []


def test_memory_keeps_nothing_between_evaluations():
    memory = Memory()
    memory.pause(state(1), 1.0, 0.5)
    assert memory.history == []
    assert memory.restore(state(0)) is None


def test_what_memory_holds_is_evaluated_anew():
    memory = Memory()
    memory.keep(evaluated(2), last=True)
    assert memory.has(2, ("test",)) is False
    assert memory.has(2, ()) is False
    assert memory.restore(state(0)) is None
    assert len(memory.history) == 1


def test_memory_forgets_the_private_states_that_another_run_left_in_a_file(tmp_path):
    rows = PrivateRows(tmp_path / "rows", lambda clients: 10.0 * clients[:, None])
    rows.write(np.asarray([3]), np.asarray([[7.0]]))
    rows.commit(b"another run")
    assert Memory().restore(state(0, rows)) is None
    np.testing.assert_array_equal(rows.read(np.asarray([3])), [[30.0]])
    assert rows.restore() is None


def test_memory_leaves_private_states_in_memory_alone():
    private = {"own": np.arange(3.0)}
    like = state(0, private)
    assert Memory().restore(like) is None
    np.testing.assert_array_equal(like.private["own"], [0, 1, 2])


@pytest.mark.parametrize("kind", [Memory, StoreRecorder, Together])
def test_every_recorder_takes_what_a_run_gives_it(kind):
    asked = [name for name in vars(Recorder) if not name.startswith("_")]
    assert sorted(asked) == ["has", "keep", "losses", "pause", "restore"]
    for name in asked:
        assert [*signature(getattr(kind, name)).parameters] == [*signature(getattr(Recorder, name)).parameters]


def test_what_was_told_does_not_change():
    told = Progress(3, 10, 0.5, {"global": 0.25})
    assert (told.round, told.rounds, told.rate, told.scores) == (3, 10, 0.5, {"global": 0.25})
    with pytest.raises(FrozenInstanceError):
        told.round = 4
    seen = evaluated(2)
    assert (seen.round, seen.seconds, seen.compile_seconds, seen.diagnostics) == (2, 2.0, 0.5, {"gap": 1.0})
    assert replace(seen, round=4).results is seen.results
    with pytest.raises(FrozenInstanceError):
        seen.round = 4


def due(beyond=3, **settings):
    schedule = Schedule(**settings)
    return [round for round in range(schedule.rounds + beyond) if schedule.is_due(round)]


def test_without_more_words_every_tenth_round_the_start_and_the_last_are_due():
    schedule = Schedule(25)
    assert due(rounds=25) == [0, 10, 20, 25]
    assert (schedule.splits, schedule.models) == (("train", "test"), ())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"eval_every": 3}, [0, 3, 6, 9, 10]),
        ({"eval_every": 5}, [0, 5, 10]),
        ({"eval_every": 10}, [0, 10]),
        ({"eval_every": 11}, [0, 10]),
        ({"eval_every": 4, "tail": 1}, [0, 4, 8, 10]),
        ({"eval_every": 4, "tail": 2}, [0, 4, 8, 9, 10]),
        ({"eval_every": 4, "tail": 4}, [0, 4, 7, 8, 9, 10]),
        ({"eval_every": 7, "tail": 99}, [*range(11)]),
        ({"eval_every": 3, "initial": False}, [3, 6, 9, 10]),
        ({"eval_every": 7, "tail": 99, "initial": False}, [*range(1, 11)]),
    ],
)
def test_of_ten_rounds_these_are_due(settings, expected):
    assert due(rounds=10, **settings) == expected


def test_nothing_is_due_after_the_last_round():
    schedule = Schedule(4, eval_every=2, tail=3)
    assert not any(schedule.is_due(round) for round in range(5, 20))


@pytest.mark.parametrize("initial", [True, False])
@pytest.mark.parametrize("tail", [0, 2, 9])
@pytest.mark.parametrize("eval_every", [1, 2, 3, 8])
def test_the_next_due_round_is_the_first_one_later(eval_every, tail, initial):
    schedule = Schedule(7, eval_every, tail, initial=initial)
    for round in range(7):
        assert schedule.next_due(round) == min(later for later in range(round + 1, 8) if schedule.is_due(later))


def test_the_round_itself_is_not_the_next():
    schedule = Schedule(7, 3)
    assert [schedule.next_due(round) for round in range(7)] == [3, 3, 3, 6, 6, 6, 7]


def test_the_best_state_is_a_copy_of_the_round_with_the_least_loss_and_never_the_start():
    best = Best(model="global")
    for round, loss in ((0, 0.1), (1, 0.9), (2, 0.5), (3, 0.7)):
        scores = scored("global", "validation", np.asarray([1.0]), np.asarray([4]))
        summary = replace(summarise(scores, METRICS["accuracy"]), loss=loss)
        kept = state(round)
        best.keep(Evaluated(round, [(scores, summary)], kept, 2.0, 0.5, {}), last=round == 3)
        if round == 2:
            assert best.state.shared["w"] is not kept.shared["w"]
    assert best.best == 3
    assert int(best.state.round) == 2
    assert len(best.history) == 4
