"""Divide series of half-overlapping windows by time, so that no window of one split shares samples with another's."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from idiolect.data.divide.division import counts
from idiolect.data.partition import Indices


def by_time(
    series: Sequence[Indices], overlaps: Bool[np.ndarray, "pool"], test: float, validation: float
) -> tuple[Indices, Indices, Indices]:
    """One client's windows: of each series the first part is for training, the last for testing.

    series: windows in the order of time (one series an activity). overlaps: whether a window of the pool overlaps
    the one before it. A training window that overlaps a window of another split is left out, and so is a validation
    window that overlaps a test window: one at most for each cut.
    """
    divided: list[list[Indices]] = [[], [], []]
    for rows in series:
        size, held, _ = counts(len(rows), test, validation)
        for part, block in zip(divided, np.split(rows, [size, size + held]), strict=True):
            part.append(block)
    train, validated, tested = (np.sort(np.concatenate(part)) for part in divided)
    validated = validated[~overlapping(validated, tested, overlaps)]
    train = train[~overlapping(train, np.concatenate([validated, tested]), overlaps)]
    return train, validated, tested


def overlapping(rows: Indices, others: Indices, overlaps: Bool[np.ndarray, "pool"]) -> Bool[np.ndarray, "_"]:
    """Which of the windows `rows` overlap a window among `others`."""
    marked = np.zeros(len(overlaps) + 1, dtype=bool)
    marked[others] = True
    following = np.append(overlaps, False)
    return (overlaps[rows] & marked[rows - 1]) | (following[rows + 1] & marked[rows + 1])
