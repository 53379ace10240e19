"""What a run tells while it goes on, and who keeps it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from idiolect.runtime.evaluate import ClientScores
from idiolect.runtime.plan import State
from idiolect.runtime.private_rows import PrivateRows
from idiolect.study.summary import Summary


@dataclass(frozen=True)
class Progress:
    """Where a run stands: rounds done of all, rounds a second, and the last evaluation's test scores by model."""

    round: int
    rounds: int
    rate: float
    scores: dict[str, float]


@dataclass(frozen=True)
class Evaluated:
    """One evaluated round: every client's scores, the first metric's summary, the state, and the time spent so far.

    state: the arrays of the run itself, which training gives up when it goes on: read them at once or copy them.
    diagnostics: what the method reports about itself; NaN where it does not know.
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

    def has(self, round: int, splits: Sequence[str]) -> bool:
        """Whether it holds the evaluation of a round on these splits."""
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
        """Nothing to go on from; private states that a file holds are of another run."""
        if isinstance(like.private, PrivateRows):
            like.private.clear()

    def has(self, round: int, splits: Sequence[str]) -> bool:
        """Never: a run in memory starts anew."""
        return False

    def keep(self, evaluated: Evaluated, last: bool) -> None:
        """Append; the states between are dropped."""
        del last
        self.history.append(evaluated)

    def pause(self, state: State, seconds: float, compile_seconds: float) -> None:
        """Keep nothing."""
        del state, seconds, compile_seconds
