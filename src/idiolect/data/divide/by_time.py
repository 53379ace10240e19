"""Divide series of half-overlapping windows by time, so that windows of different splits share no samples."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from idiolect.data.divide.division import counts
from idiolect.data.partition import Indices


def by_time(
    series: Sequence[Indices], overlaps: Bool[np.ndarray, "pool"], test: float, validation: float
) -> tuple[Indices, Indices, Indices]:
    """(train, validation, test) windows of one client: of each series the first train, the last test.

    series: windows in the order of time (one series an activity). overlaps: whether a window of the pool overlaps
    the one before it. At each cut, the window that overlaps a later split's window is left out.
    """
    divided: list[list[Indices]] = [[], [], []]
    for rows in series:
        size, num_validation, _ = counts(len(rows), test, validation)
        for part, block in zip(divided, np.split(rows, [size, size + num_validation]), strict=True):
            part.append(block)
    train, validation_windows, test_windows = (np.sort(np.concatenate(part)) for part in divided)
    validation_windows = validation_windows[~overlapping(validation_windows, test_windows, overlaps)]
    train = train[~overlapping(train, np.concatenate([validation_windows, test_windows]), overlaps)]
    return train, validation_windows, test_windows


def overlapping(rows: Indices, others: Indices, overlaps: Bool[np.ndarray, "pool"]) -> Bool[np.ndarray, "_"]:
    """Which of the windows `rows` overlap a window among `others`."""
    marked = np.zeros(len(overlaps) + 1, dtype=bool)
    marked[others] = True
    following = np.append(overlaps, False)
    return (overlaps[rows] & marked[rows - 1]) | (following[rows + 1] & marked[rows + 1])
