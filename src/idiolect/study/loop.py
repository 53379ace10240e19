"""One run: rounds, evaluations between them, and a recorder that may keep them."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import jax
import numpy as np
from jaxtyping import Int, PyTree

from idiolect.core.errors import DivergedError
from idiolect.runtime.devices import agreed
from idiolect.runtime.evaluate import ClientScores, Evaluator
from idiolect.runtime.simulate import Simulation, State
from idiolect.study.summary import Summary, summarise

_CALL_SECONDS = 0.5  # rounds are run in calls of about this length, so that progress moves


@dataclass(frozen=True)
class Progress:
    """Where a run stands: rounds done of all, rounds a second, and the last evaluation's test scores by model."""

    round: int
    rounds: int
    rate: float
    scores: dict[str, float]


@dataclass(frozen=True)
class Evaluated:
    """One evaluated round: every client's scores with their summaries, the state, and the time spent so far.

    state: the arrays of the run itself, which training gives up when it goes on: read them at once or copy them.
    diagnostics: what the method says of itself; NaN where it does not know.
    """

    round: int
    results: list[tuple[ClientScores, Summary]]
    state: State
    seconds: float
    compile_seconds: float
    diagnostics: dict[str, float]


class Recorder(Protocol):
    """Keeps what a run produces, and gives back the state from which it can go on."""

    def restore(self, like: State) -> tuple[State, float, float] | None:
        """The last kept state with the seconds spent on it (training, compiling), or None."""
        ...

    def keep(self, evaluated: Evaluated, last: bool) -> None:
        """Keep one evaluated round; `last` marks the run's end."""
        ...

    def pause(self, state: State, seconds: float, compile_seconds: float) -> None:
        """A moment between two evaluations, at which the state may be kept."""
        ...


@dataclass
class Memory:
    """A recorder that keeps evaluations in a list and nothing on disk."""

    history: list[Evaluated] = field(default_factory=list[Evaluated])

    def restore(self, like: State) -> None:
        """Nothing to go on from."""
        del like

    def keep(self, evaluated: Evaluated, last: bool) -> None:
        """Append; the states between are dropped."""
        del last
        self.history.append(evaluated)

    def pause(self, state: State, seconds: float, compile_seconds: float) -> None:
        """Keep nothing."""
        del state, seconds, compile_seconds


def fit(
    simulation: Simulation,
    evaluator: Evaluator,
    *,
    seed: int,
    rounds: int,
    params: PyTree | None = None,
    eval_every: int = 10,
    tail: int = 0,
    splits: Sequence[str] = ("train", "test"),
    recorder: Recorder,
    rows: Path | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> State:
    """Run `rounds` rounds, evaluating all named models before the first, every `eval_every` rounds and at the end.

    tail: each of the last `tail` rounds is evaluated too. rows: a file for the clients' private states, see
    `Simulation.init`.

    Raises `DivergedError` at the first NaN or infinity, in training or in an evaluation.
    """
    state = simulation.init(seed, params, rows)
    restored = recorder.restore(state)
    spent, compiling = 0.0, 0.0
    if restored is not None:
        state, spent, compiling = restored
        state = simulation.devices.place(state)
    done = int(state.round)
    on_progress(Progress(done, rounds, 0.0, {}))
    started = time.perf_counter()
    state = simulation.advance(state, 0)  # compiles and runs nothing
    jax.block_until_ready(state.shared)
    compiling += time.perf_counter() - started
    scores: dict[str, float] = {}

    def evaluate(round: int) -> None:
        results = [(s, summarise(s, simulation.data.task)) for s in evaluator(state, splits=splits)]
        for s, summary in results:
            if not math.isfinite(summary.loss):
                raise diverged(simulation, s, round, evaluator.ids)
        scores.update({s.model: m.weighted for s, m in results if s.split == "test"})
        said = {k: float(v) for k, v in simulation.algorithm.diagnostics(state.shared).items()}
        recorder.keep(Evaluated(round, results, state, spent, compiling, said), last=round >= rounds)

    if restored is None:
        evaluate(0)
    call, first = 1, (done, time.perf_counter())
    while done < rounds:
        until = next(round for round in range(done + 1, rounds + 1) if is_due(round, rounds, eval_every, tail))
        began = time.perf_counter()
        steps = int(agreed(np.asarray(min(call, until - done))))  # processes differ in speed, not in rounds
        state = simulation.advance(state, steps)
        done = int(state.round)
        took = time.perf_counter() - began
        spent += took
        if took < _CALL_SECONDS / 2:
            call *= 2
        elif took > 2 * _CALL_SECONDS:
            call = max(1, call // 2)
        if done == until:
            evaluate(done)
        else:
            recorder.pause(state, spent, compiling)
        rate = (done - first[0]) / max(time.perf_counter() - first[1], 1e-9)
        on_progress(Progress(done, rounds, rate, dict(scores)))
    return state


def is_due(round: int, rounds: int, eval_every: int, tail: int = 0) -> bool:
    """Whether a round is evaluated in a run of `rounds`; see `fit`."""
    return round % eval_every == 0 or round == rounds or round > rounds - tail


def diverged(
    simulation: Simulation, scores: ClientScores, round: int, ids: Int[np.ndarray, "clients"] | None = None
) -> DivergedError:
    """The error for an evaluation that is not finite, with the first client at which it is not.

    ids: the numbers of the clients that were evaluated, if not all.
    """
    bad = np.flatnonzero((scores.count > 0) & ~np.isfinite(scores.loss))
    place = int(bad[0]) if len(bad) else None
    client = None if place is None else simulation.data.clients[place if ids is None else ids[place]]
    stage = f"evaluation of model '{scores.model}' on the {scores.split} split"
    return DivergedError(
        f"{simulation.algorithm.name} diverged (NaN or infinity) in round {round}, "
        f"client '{client}', stage: {stage}; lower the learning rates",
        round=round,
        client=client,
        stage=stage,
    )
