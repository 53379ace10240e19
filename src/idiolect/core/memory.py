"""Memory: how much this machine has, and aligned arrays, which numpy and a CPU device share without a copy."""

import math
import mmap
import os

import numpy as np
from jaxtyping import Shaped
from numpy.typing import DTypeLike

from idiolect.core.errors import require


def machine_memory() -> int | None:
    """Bytes of memory that this machine has, or None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, LookupError, ValueError, OSError):
        return None


def check_fits(needed: int, what: str) -> None:
    """Raise `ConfigError` if something needs more bytes than this machine has; what: what it is, what to do."""
    if (memory := machine_memory()) is not None:
        shortage = f"this machine has {memory / 1e9:.0f} GB of memory, and at least {needed / 1e9:,.0f} GB are needed"
        require(needed <= memory, f"{shortage} for {what}")


BOUNDARY = 64  # bytes; XLA uses a numpy array without copying it only if it begins on such a boundary


def aligned_empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float32) -> Shaped[np.ndarray, "..."]:
    """Return an uninitialised array that begins on a 64-byte boundary."""
    shape = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + BOUNDARY, dtype=np.uint8)
    skip = -memory.ctypes.data % BOUNDARY
    return memory[skip : skip + size].view(dtype).reshape(shape)


def is_aligned(array: Shaped[np.ndarray, "..."]) -> bool:
    """Whether the device can use the array without a copy."""
    return array.flags.c_contiguous and array.ctypes.data % BOUNDARY == 0


def is_mapped(array: Shaped[np.ndarray, "..."]) -> bool:
    """Whether an array is a file's that is mapped into memory, and not a part of one."""
    return isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap)
