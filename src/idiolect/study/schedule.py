"""When a run is evaluated, and on what."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Which rounds are evaluated: every `eval_every`, the last, each of the last `tail`, and the start if `initial`.

    rounds: the last round. splits: the evaluated splits. models: names of the evaluated models, all if empty.
    """

    rounds: int
    eval_every: int = 10
    tail: int = 0
    splits: tuple[str, ...] = ("train", "test")
    models: tuple[str, ...] = ()
    initial: bool = True

    def is_due(self, round: int) -> bool:
        """Whether a round is evaluated."""
        if round == 0:
            return self.initial
        if round > self.rounds:
            return False
        return round % self.eval_every == 0 or round == self.rounds or round > self.rounds - self.tail

    def next_due(self, round: int) -> int:
        """The first round after this one that is evaluated."""
        return next(later for later in range(round + 1, self.rounds + 1) if self.is_due(later))
