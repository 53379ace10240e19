"""What a run needs of memory at least, and how many runs of a sweep fit into a memory budget at once."""

import math
import os
from collections.abc import Callable

import jax

from idiolect.algorithms.base import Algorithm, Start
from idiolect.core.errors import require
from idiolect.core.memory import check_fits, machine_memory
from idiolect.core.settings import settings_of

MEMORY = "IDIOLECT_MEMORY"
_CERTAIN = 16  # an estimate this many times below the budget needs no count by XLA


def check_batches(algorithm: Algorithm, start: Start) -> None:
    """Raise `ConfigError` if the mini-batches of a client's round cannot fit in this machine's memory.

    They are drawn together: steps x batch_size x features, of four bytes. inner_steps take the batch of their step.
    """
    batch_size = getattr(algorithm, "batch_size", 0)
    passes = getattr(algorithm, "epochs", 0)
    drawn = {"batch_size": 1}
    for name in settings_of(type(algorithm)):
        if name.endswith("_steps") and name != "inner_steps" and not (name == "local_steps" and passes):
            drawn[name] = int(getattr(algorithm, name))
    name = max(drawn, key=drawn.__getitem__)
    rows = max(drawn[name], 1) * batch_size
    several = f"{name} = {drawn[name]:,} and " if drawn[name] > 1 else ""
    what = f"the mini-batches of {algorithm.name} ({several}batch_size = {batch_size:,}); lower them"
    check_fits(4 * rows * math.prod(start.feature_shape), what)


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
