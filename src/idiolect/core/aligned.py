"""Aligned arrays, which numpy and a CPU device share without a copy."""

import math

import numpy as np
from jaxtyping import Shaped
from numpy.typing import DTypeLike

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
