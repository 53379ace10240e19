"""When a run is evaluated and stops that trains until its validation loss stops falling."""

from collections.abc import Mapping, Sequence

from idiolect.core.errors import require

FIXED = 100
"""Rounds where no client has validation rows, so that no stop can be decided."""
PATIENCE = 3
"""Evaluations in which the validation loss must not have fallen. As rounds grow by half, they more than triple."""
FALL = 0.001
"""The share of the loss by which it must have fallen, at least, to count."""


def looked_at(rounds: int) -> list[int]:
    """Return the rounds after which models are evaluated on validation data: 1, 2, 3, 4, 6, 9, 14, ..., and the last.

    Each is half as many again as the one before, rounded (to an even number from the middle between two).
    """
    require(rounds >= 1, f"rounds = {rounds!r} must be a whole number of at least 1")
    found = [1]
    while found[-1] < rounds:
        found.append(min(round(found[-1] * 1.5), rounds))
    return found


def settled(losses: Sequence[float]) -> bool:
    """Whether a validation loss has stopped falling.

    Its smallest value in the last `PATIENCE` evaluations is not below the smallest one before them by more than the
    share `FALL`. losses: at every evaluation so far, in order.
    """
    before, last = losses[:-PATIENCE], losses[-PATIENCE:]
    return len(before) > 0 and min(last) >= min(before) - FALL * abs(min(before))


def all_settled(losses: Mapping[str, Sequence[float]]) -> bool:
    """Whether every named model's validation loss has stopped falling; False without any."""
    return len(losses) > 0 and all(settled(course) for course in losses.values())
