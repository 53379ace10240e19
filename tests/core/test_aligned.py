"""Aligned memory: the samples lie once in a process, shared by numpy and the device."""

import jax
import numpy as np
import pytest

from idiolect.client.samples import to_device
from idiolect.core.aligned import aligned_empty, is_aligned
from idiolect.data import from_arrays


@pytest.mark.parametrize("shape", [7, (3, 5), (1000, 784)])
def test_arrays_begin_on_the_boundary(shape: int | tuple[int, ...]) -> None:
    array = aligned_empty(shape)
    assert is_aligned(array)
    assert array.shape == np.empty(shape).shape
    assert array.dtype == np.float32
    array[...] = 1
    assert array.sum() == array.size


def test_the_device_reads_the_samples_where_they_lie() -> None:
    if jax.default_backend() != "cpu":
        pytest.skip("only a CPU shares memory with numpy")
    rng = np.random.default_rng(0)
    data = from_arrays({f"c{i}": (rng.normal(size=(40, 3)), rng.integers(0, 2, 40)) for i in range(2)})
    moved = to_device(data.train)
    assert moved.x.unsafe_buffer_pointer() == data.train.x.ctypes.data
    with pytest.raises(ValueError, match="read-only"):
        data.train.x[0, 0] = 1.0  # it would change the numbers of a run
    np.testing.assert_array_equal(moved.x, data.train.x)
