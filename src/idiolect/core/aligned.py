"""Memory that numpy and the device can share: the samples then exist once in a process, not twice."""

import math

import numpy as np
from jaxtyping import Shaped
from numpy.typing import DTypeLike

BOUNDARY = 64  # bytes; XLA takes a numpy array as it lies only if it begins on such a boundary


def aligned_empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float32) -> Shaped[np.ndarray, "..."]:
    """An array that begins on a 64-byte boundary, its contents not set."""
    shape = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + BOUNDARY, dtype=np.uint8)
    skip = -memory.ctypes.data % BOUNDARY
    return memory[skip : skip + size].view(dtype).reshape(shape)


def is_aligned(array: Shaped[np.ndarray, "..."]) -> bool:
    """Whether the device can use the array as it lies."""
    return array.flags.c_contiguous and array.ctypes.data % BOUNDARY == 0
