"""How many runs of a sweep run at once: as many as fit into a memory budget."""

import math
import os
from collections.abc import Callable

import jax

from idiolect.core.errors import require
from idiolect.core.memory import machine_memory

MEMORY = "IDIOLECT_MEMORY"
_CERTAIN = 16  # an estimate this many times below the budget needs no count by XLA


def default_memory() -> int:
    """The bytes that a sweep may use: IDIOLECT_MEMORY (GB), else a share of the memory.

    The share is half of the accelerators' memory, or a quarter of the machine's (1 GiB if that is unknown). Raises
    `ConfigError` if the variable is not a number greater than 0.
    """
    if variable := os.environ.get(MEMORY):
        try:
            value = float(variable)
        except ValueError:
            value = math.nan
        require(0 < value < math.inf, f"{MEMORY} = {variable} must be a number of GB greater than 0")
        return int(value * 1e9)
    limits = [(device.memory_stats() or {}).get("bytes_limit", 0) for device in jax.local_devices()]
    if jax.default_backend() != "cpu" and all(limits):
        return sum(limits) // 2
    memory = machine_memory()
    return 1 << 30 if memory is None else memory // 4


def at_once(runs: int, memory: int, about: Callable[[int], int], counted: Callable[[int], int]) -> int:
    """Divide `runs` runs into equal portions that fit in `memory` bytes; returns the runs of one portion, at least 1.

    about, counted: number of runs -> bytes. `about` is the estimate of `Program.bytes_about`. `counted` is XLA's
    count, used only if the estimate is near the budget.
    """
    portions = 1
    while True:
        size = math.ceil(runs / portions)
        needed = about(size)
        if size == 1:
            return size
        if memory / _CERTAIN < needed <= memory:
            needed = counted(size)
        if needed <= memory:
            return size
        # Smaller portions hold fewer states; the runs at work may need as much as before.
        portions = min(runs, max(portions + 1, math.floor(portions * needed / memory)))
