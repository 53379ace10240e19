"""Samples that are mapped from a file: the rows of coming cohorts are asked for while the present rounds run.

A round only reads its cohort's rows. The system reads them from the disk when a round needs them, and the round would
wait. So rounds run in windows, and meanwhile the system is asked for the rows that the next window needs. Rounds,
draws and results are those of samples in memory, to the last bit.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from idiolect.core.memory import is_mapped
from idiolect.data.federated import GeneratedSplit, Split
from idiolect.runtime.round import State
from idiolect.runtime.sampling import Sampling

WINDOW = 2**27
"""Bytes of rows that are asked for together; at least one round's."""
_ASKED = 2**17  # bytes that are asked for at a time: of more, Linux reads the beginning only


class Ahead:
    """Asks for the training rows of coming cohorts. split: its features are mapped from a file."""

    def __init__(self, split: Split, sampling: Sampling) -> None:
        self._sampling, self._starts, self._sizes = sampling, split.starts, split.sizes
        self._row = split.x[:1].nbytes
        file: Any = split.x
        self._path, self._offset = str(file.filename), int(file.offset)
        round_bytes = sampling.size * self._row * split.count / len(split.sizes)
        self._each = max(1, int(WINDOW / round_bytes))

    @classmethod
    def of(cls, split: Split | GeneratedSplit, sampling: Sampling) -> "Ahead | None":
        """For this split; None if nothing need be asked for: it is in memory, or all clients take part.

        Where all take part, rows are read in their order, and the system reads ahead by itself.
        """
        if isinstance(split, GeneratedSplit) or not is_mapped(split.x) or sampling.size == sampling.population:
            return None
        return cls(split, sampling) if hasattr(os, "posix_fadvise") and jax.default_backend() == "cpu" else None

    def run(self, until: Callable[[State, int, int], State], state: State, end: int, capacity: int) -> State:
        """until(state, end, capacity), window by window. capacity: rows that hold any cohort."""
        edges = [*range(int(state.round), end, self._each), end]
        windows = [*pairwise(edges)]
        if not windows:
            return until(state, end, capacity)
        numbers = jax.device_get(jax.random.key_data(state.seed))  # the state's own buffers are consumed
        seed = jax.random.wrap_key_data(jnp.asarray(numbers))
        with ThreadPoolExecutor(1) as thread:
            thread.submit(self._ask, seed, *windows[0], capacity)
            for place, (_, last) in enumerate(windows):
                if place + 1 < len(windows):
                    thread.submit(self._ask, seed, *windows[place + 1], capacity)
                state = until(state, last, capacity)
                if int(state.round) < last:  # it waits for the window; a fault ends the run
                    break
        return state

    def _ask(self, seed: PRNGKeyArray, first: int, last: int, capacity: int) -> None:
        """Ask the system for the rows of the rounds first..last - 1. It reads them while this process computes."""
        rounds = np.minimum(np.arange(first, first + self._each), last - 1)
        clients = np.unique(np.asarray(self._cohorts(seed, rounds, capacity)))
        with suppress(OSError):  # a file system that cannot read ahead
            file = os.open(self._path, os.O_RDONLY)
            try:
                for client in clients.tolist():
                    begin = self._offset + int(self._starts[client]) * self._row
                    end = begin + int(self._sizes[client]) * self._row
                    for place in range(begin, end, _ASKED):
                        os.posix_fadvise(file, place, min(_ASKED, end - place), os.POSIX_FADV_WILLNEED)
            finally:
                os.close(file)

    @cached_property
    def _cohorts(self) -> Callable[[PRNGKeyArray, Int[np.ndarray, "rounds"], int], Int[Array, "rounds capacity"]]:
        def cohorts(seed: PRNGKeyArray, rounds: Int[Array, "rounds"], capacity: int) -> Int[Array, "rounds capacity"]:
            ids, present = jax.vmap(lambda round: self._sampling.draw(seed, round, capacity))(rounds)
            return jnp.where(present, ids, ids[:, :1])

        return jax.jit(cohorts, static_argnums=2)
