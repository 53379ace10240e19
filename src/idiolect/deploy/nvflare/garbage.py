"""Collecting the garbage that the engine leaves with every call."""

import gc
import itertools

EVERY = 20
"""Calls between two collections."""


class Collector:
    """Called once after every call of a worker: collects at the first and then at each `EVERY`-th.

    The engine leaves a call's buffers in cycles of objects, which only Python's collector frees; by itself it looks
    through all of them too rarely here, and a site's worker grew by 8 KB a round (`python -m benchmarks.sites soak`).
    What the first call has loaded stays, so it is frozen: a later collection looks at some thousand objects only.
    """

    def __init__(self) -> None:
        self._calls = itertools.count()

    def __call__(self) -> None:
        """Count one call; collect if it is time."""
        call = next(self._calls)
        if call % EVERY == 0:
            gc.collect()
        if call == 0:
            gc.freeze()
