from itertools import count

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.core.errors import DivergedError
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.program import Program, member_of
from idiolect.study.run import loop
from idiolect.study.run.loop import Run, fit, run_together
from idiolect.study.run.recording import Memory, Progress, Schedule
from tests.federations import bits, classification


@pytest.fixture(scope="module")
def program():
    simulation = classification().simulation(FedAvg(local_steps=2, batch_size=4), cohort=2, rounds=5)
    return Program([simulation])


def run(program, recorder, *, on_progress=lambda _: None, **options):
    schedule = Schedule(**{"rounds": 5, "eval_every": 2, "splits": ("test",), **options})
    return fit(program, schedule, seed=0, recorder=recorder, on_progress=on_progress)


def test_evaluates_before_the_first_round_regularly_and_at_the_end(program):
    memory, seen = Memory(), []
    state = run(program, memory, on_progress=seen.append)
    assert [e.round for e in memory.history] == [0, 2, 4, 5]
    assert int(state.round) == 5
    assert seen[0] == Progress(0, 5, 0.0, {})
    assert [p.round for p in seen] == sorted(p.round for p in seen)
    assert seen[-1].round == seen[-1].rounds == 5
    assert seen[-1].scores == {"global": memory.history[-1].results[0][1].pooled}
    assert seen[-1].rate > 0


class Kept(Memory):
    """Gives back one state, and keeps where it was asked to pause."""

    def __init__(self, state=None):
        super().__init__()
        self.state, self.paused = state, []
        self.round = None if state is None else int(state.round)  # training gives the state up

    def restore(self, like):
        assert jax.tree.structure(like) == jax.tree.structure(self.state or like)
        return None if self.state is None else (self.state, 10.0, 1.0)

    def has(self, round, splits):
        return self.state is not None and round == self.round

    def pause(self, state, seconds, compile_seconds):
        self.paused.append((int(state.round), jax.tree.map(jnp.copy, state)))


def test_goes_on_from_any_round_to_the_same_bits(program):
    whole = Kept()
    final = bits(run(program, whole))
    round, state = next(kept for kept in whole.paused if kept[0] % 2)
    resumed = Kept(state)
    again = run(program, resumed)
    assert bits(again) == final
    assert [e.round for e in resumed.history] == [e.round for e in whole.history if e.round > round]
    for old, new in zip(whole.history[-len(resumed.history) :], resumed.history, strict=True):
        assert np.array_equal(old.results[0][0].loss, new.results[0][0].loss)
    assert resumed.history[-1].seconds > 10
    assert resumed.history[-1].compile_seconds > 1


def test_a_finished_run_is_left_as_it_is(program):
    state = run(program, Memory())
    kept = Kept(state)
    before = bits(state)
    assert bits(run(program, kept)) == before
    assert kept.history == kept.paused == []


def test_diagnostics_are_kept_with_each_evaluation_and_may_be_unknown(program, monkeypatch):
    def said(self, shared):
        total = sum(jnp.sum(leaf) for leaf in jax.tree.leaves(shared))
        return {"total": total, "unknown": jnp.asarray(jnp.nan)}

    totals = []

    class Totals(Memory):
        def keep(self, evaluated, last):
            super().keep(evaluated, last)
            totals.append(sum(float(np.sum(leaf)) for leaf in jax.tree.leaves(evaluated.state.shared)))

    monkeypatch.setattr(FedAvg, "diagnostics", said, raising=False)
    memory = Totals()
    run(program, memory)
    assert [e.round for e in memory.history] == [0, 2, 4, 5]
    assert [e.diagnostics["total"] for e in memory.history] == pytest.approx(totals, rel=1e-5)
    assert len({round(total, 3) for total in totals}) == 4
    assert all(np.isnan(e.diagnostics["unknown"]) for e in memory.history)
    assert {type(value) for e in memory.history for value in e.diagnostics.values()} == {float}


def test_a_method_without_diagnostics_has_none(program):
    memory = Memory()
    run(program, memory)
    assert [e.diagnostics for e in memory.history] == [{}] * 4


def test_a_model_that_is_not_finite_is_named_with_round_client_and_stage(program):
    state = program.like.init(0)
    bad = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), state.shared)
    broken = Kept(type(state)(bad, state.private, jnp.asarray(4, jnp.int32), state.seed, state.fault))
    with pytest.raises(DivergedError, match=r"fedavg diverged .* in round 5") as caught:
        run(program, broken)
    assert (caught.value.round, caught.value.stage) == (5, "local training")


def test_an_evaluation_that_is_not_finite_is_named(program, monkeypatch):
    scores = Evaluator.__call__

    def spoiled(self, *args, **options):
        found = scores(self, *args, **options)
        found[0].loss[2] = np.inf
        return found

    monkeypatch.setattr(Evaluator, "__call__", spoiled)
    memory = Memory()
    with pytest.raises(DivergedError) as caught:
        run(program, memory)
    assert (caught.value.round, caught.value.client) == (0, "c2")
    assert "in round 0, client 'c2', stage: evaluation of model 'global' on the test split" in str(caught.value)
    assert memory.history == []


def timed(monkeypatch, seconds, members, rounds=30):
    """Run members by a clock that goes on by so many seconds at each look: (their histories, rounds of each call)."""
    clock, calls, memories = count(0, seconds), [], [Memory() for _ in range(members)]
    simulations = [classification().simulation(FedAvg(local_steps=1, batch_size=4), rounds=rounds) for _ in memories]
    program = Program(simulations, [member_of(sim) for sim in simulations] if members > 1 else ())
    advance = program.advance

    def advanced(rows, states, end, capacity):
        calls.append(end)
        return advance(rows, states, end, capacity)

    monkeypatch.setattr(loop.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(program, "advance", advanced)
    schedule = Schedule(rounds=rounds, eval_every=rounds, splits=("test",))
    runs = [
        Run(sim, seed, sim.params, memory)
        for seed, (sim, memory) in enumerate(zip(simulations, memories, strict=True))
    ]
    run_together(program, runs, schedule)
    return [memory.history for memory in memories], calls


@pytest.mark.parametrize(
    ("seconds", "ends"),
    [
        (loop._CALL_SECONDS / 2, [0, *range(1, 31)]),  # not shorter than half of what a call may take: one round each
        (loop._CALL_SECONDS / 4, [0, 1, 3, 7, 15, 30]),  # twice as many rounds each time
    ],
)
def test_seconds_are_those_of_training_and_short_calls_take_more_rounds(monkeypatch, seconds, ends):
    """A look before and one after each call: each takes what the clock goes on by."""
    (history,), calls = timed(monkeypatch, seconds, 1)
    assert calls == ends
    assert [e.round for e in history] == [0, 30]
    assert (history[0].seconds, history[0].compile_seconds) == (0, seconds)
    assert (history[-1].seconds, history[-1].compile_seconds) == (pytest.approx((len(ends) - 1) * seconds), seconds)


def test_members_share_the_seconds_of_their_calls(monkeypatch):
    histories, calls = timed(monkeypatch, 3.0, 2)
    assert calls == [0, 30]
    assert [(h[-1].seconds, h[-1].compile_seconds) for h in histories] == [(1.5, 1.5), (1.5, 1.5)]
