"""How many runs of a sweep go at once: as many as a budget of memory holds."""

import math
import os
from collections.abc import Callable

import jax

from idiolect.core.errors import require
from idiolect.core.memory import machine_memory

MEMORY = "IDIOLECT_MEMORY"
_CERTAIN = 16  # an estimate so many times below the budget needs no count by XLA


def default_memory() -> int:
    """Bytes that a sweep may use: IDIOLECT_MEMORY (GB), or a quarter of the machine's, or half of the accelerators'.

    Raises `ConfigError` if the variable is not a number greater than 0.
    """
    if given := os.environ.get(MEMORY):
        try:
            value = float(given)
        except ValueError:
            value = math.nan
        require(0 < value < math.inf, f"{MEMORY} = {given} must be a number of GB greater than 0")
        return int(value * 1e9)
    limits = [(device.memory_stats() or {}).get("bytes_limit", 0) for device in jax.local_devices()]
    if jax.default_backend() != "cpu" and all(limits):
        return sum(limits) // 2
    memory = machine_memory()
    return 1 << 30 if memory is None else memory // 4


def at_once(runs: int, memory: int, about: Callable[[int], int], counted: Callable[[int], int]) -> int:
    """How many of `runs` runs go at once in `memory` bytes: chunks of equal size, of one run if nothing else fits.

    about, counted: bytes that so many runs take, as `Program.bytes_about` guesses, and as XLA says, which is asked
    only where the guess comes near the budget.
    """
    chunks = 1
    while True:
        size = math.ceil(runs / chunks)
        needed = about(size)
        if size == 1:
            return size
        if memory / _CERTAIN < needed <= memory:
            needed = counted(size)
        if needed <= memory:
            return size
        # What is held for each run falls with the size, what is used by those at work need not.
        chunks = min(runs, max(chunks + 1, math.floor(chunks * needed / memory)))
