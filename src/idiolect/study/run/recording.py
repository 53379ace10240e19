"""When a run is evaluated, what it reports while it runs, and the interface of recorders."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import jax
import jax.numpy as jnp

from idiolect.runtime.evaluate import ClientScores
from idiolect.runtime.private_rows import PrivateRows
from idiolect.runtime.round import State
from idiolect.study.run.rounds import all_settled, looked_at
from idiolect.study.store.summary import Summary


@dataclass(frozen=True)
class Progress:
    """The progress of a run: rounds done, rounds in all, rounds a second, and the latest test score of each model."""

    round: int
    rounds: int
    rate: float
    scores: dict[str, float]


@dataclass(frozen=True)
class Evaluated:
    """One evaluated round: every client's scores, the first metric's summary, the state, and the time spent so far.

    state: the run's own arrays, which the next round consumes: read or copy them at once. seconds, compile_seconds:
    spent on training and on compiling. diagnostics: values that the method reports about itself; NaN if unknown.
    """

    round: int
    results: list[tuple[ClientScores, Summary]]
    state: State
    seconds: float
    compile_seconds: float
    diagnostics: dict[str, float]


class Recorder(Protocol):
    """Stores what a run produces, and restores the state from which it can resume."""

    def restore(self, like: State) -> tuple[State, float, float] | None:
        """Load the last stored (state, training seconds, compile seconds), or None."""
        ...

    def has(self, round: int, splits: Sequence[str]) -> bool:
        """Whether the evaluation of this round on these splits is stored."""
        ...

    def losses(self) -> Mapping[str, Sequence[float]]:
        """Every named model's pooled validation loss at all stored evaluations, in order."""
        ...

    def keep(self, evaluated: Evaluated, last: bool) -> None:
        """Store one evaluated round; `last` marks the run's end."""
        ...

    def pause(self, state: State, seconds: float, compile_seconds: float) -> None:
        """Called between two evaluations: the state may be stored."""
        ...


@dataclass
class Memory:
    """A recorder that keeps evaluations in a list and nothing on disk."""

    history: list[Evaluated] = field(default_factory=list[Evaluated])

    def restore(self, like: State) -> None:
        """Start anew; a file of private states is cleared, since it is of another run."""
        if isinstance(like.private, PrivateRows):
            like.private.clear()

    def has(self, round: int, splits: Sequence[str]) -> bool:
        """Never: a run in memory always starts anew."""
        return False

    def losses(self) -> dict[str, list[float]]:
        """Every named model's pooled validation loss, by evaluation."""
        courses: dict[str, list[float]] = {}
        for evaluated in self.history:
            for scores, summary in evaluated.results:
                if scores.split == "validation":
                    courses.setdefault(scores.model, []).append(summary.loss)
        return courses

    def keep(self, evaluated: Evaluated, last: bool) -> None:
        """Append the evaluation."""
        del last
        self.history.append(evaluated)

    def pause(self, state: State, seconds: float, compile_seconds: float) -> None:
        """Store nothing."""
        del state, seconds, compile_seconds


@dataclass
class Best(Memory):
    """A memory that also copies the state of the round with the least pooled validation loss of one named model.

    model: its name. best: the number of evaluations up to that round, 0 before any counts. The start, round 0, does
    not count. state: of that round; only states in memory can be copied.
    """

    model: str = ""
    best: int = 0
    state: State | None = None

    def keep(self, evaluated: Evaluated, last: bool) -> None:
        """Append the evaluation; copy its state where the loss is smaller than in all earlier rounds."""
        super().keep(evaluated, last)
        course = self.losses()[self.model]
        first = sum(one.round == 0 for one in self.history)
        if evaluated.round and course[-1] < min(course[first:-1], default=math.inf):
            self.best, self.state = len(self.history), jax.tree.map(jnp.copy, evaluated.state)


@dataclass(frozen=True)
class Schedule:
    """Which rounds are evaluated: every `eval_every`, the last, each of the last `tail`, and the start if `initial`.

    rounds: the last round. splits: the evaluated splits. models: names of the evaluated models, all if empty.
    until_settled: evaluate after rounds 1, 2, 3, 4, 6, 9, ... instead, see `looked_at`, and stop early, where every
    model's validation loss has stopped falling, see `settled`; but not before round `settling`.
    """

    rounds: int
    eval_every: int = 10
    tail: int = 0
    splits: tuple[str, ...] = ("train", "test")
    models: tuple[str, ...] = ()
    initial: bool = True
    until_settled: bool = False
    settling: int = 0

    def is_due(self, round: int) -> bool:
        """Whether a round is evaluated."""
        if round == 0:
            return self.initial
        if round > self.rounds:
            return False
        if self.until_settled:
            return round in looked_at(self.rounds)
        return round % self.eval_every == 0 or round == self.rounds or round > self.rounds - self.tail

    def next_due(self, round: int) -> int:
        """The first round after this one that is evaluated."""
        return next(later for later in range(round + 1, self.rounds + 1) if self.is_due(later))

    def is_over(self, round: int, losses: Mapping[str, Sequence[float]]) -> bool:
        """Whether a run ends with this round. losses: of `Recorder.losses`, this round's among them."""
        return round >= self.rounds or (self.until_settled and round >= self.settling and all_settled(losses))
