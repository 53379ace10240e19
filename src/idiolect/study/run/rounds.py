"""The rounds after which models are evaluated on validation data."""

from idiolect.core.errors import require


def looked_at(rounds: int) -> list[int]:
    """Return the rounds after which models are evaluated on validation data: 1, 2, 3, 4, 6, 9, 14, ..., and the last.

    Each is half as many again as the one before, rounded (to an even number from the middle between two).
    """
    require(rounds >= 1, f"rounds = {rounds!r} must be a whole number of at least 1")
    found = [1]
    while found[-1] < rounds:
        found.append(min(round(found[-1] * 1.5), rounds))
    return found
