from types import SimpleNamespace

import jax
import numpy as np
import pytest

from idiolect.client.samples import to_device
from idiolect.core import memory
from idiolect.core.errors import ConfigError
from idiolect.core.memory import BOUNDARY, aligned_empty, is_aligned
from idiolect.data import from_arrays


def test_what_needs_more_than_the_machine_has_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 4_000_000_000)
    memory.check_fits(4_000_000_000, "it")
    with pytest.raises(ConfigError, match=r"has 4 GB of memory, and at least 5 GB are needed for it; use less"):
        memory.check_fits(5_000_000_000, "it; use less")
    monkeypatch.setattr(memory, "machine_memory", lambda: None)
    memory.check_fits(10**15, "it")


def test_the_machine_s_memory_is_what_the_system_says(monkeypatch):
    sizes = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(memory, "os", SimpleNamespace(sysconf=sizes.__getitem__))
    assert memory.machine_memory() == 4_096_000
    del sizes["SC_PAGE_SIZE"]
    assert memory.machine_memory() is None


@pytest.mark.parametrize("shape", [7, (), (3, 5), (1000, 784)])
@pytest.mark.parametrize("dtype", [np.float32, "u1", "<i8"])
def test_arrays_begin_on_the_boundary(shape: int | tuple[int, ...], dtype: str) -> None:
    array = aligned_empty(shape, dtype)
    assert is_aligned(array)
    assert array.ctypes.data % BOUNDARY == 0
    assert array.shape == np.empty(shape).shape
    assert array.dtype == np.dtype(dtype)
    array[...] = 1
    assert array.sum() == array.size
    assert aligned_empty(3).dtype == np.float32


def test_the_boundary_is_xlas() -> None:
    """Half of it is not enough: XLA then makes a copy."""
    assert BOUNDARY == 64
    memory = np.zeros(4 * BOUNDARY, np.uint8)
    start = -memory.ctypes.data % BOUNDARY
    for shift in (0, 1, 16, 32, 64):
        assert is_aligned(memory[start + shift : start + shift + 8]) == (shift % 64 == 0)


def test_only_rows_that_lie_together_are_aligned() -> None:
    array = aligned_empty((16, 16))
    assert not is_aligned(array[:, :3])
    assert not is_aligned(array.T)
    assert is_aligned(array[4:])
    assert not is_aligned(array.reshape(-1)[1:])


def test_the_device_reads_many_samples_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idiolect.client.samples.COPIED", 0)
    if jax.default_backend() != "cpu":
        pytest.skip("only a CPU shares memory with numpy")
    rng = np.random.default_rng(0)
    data = from_arrays({f"c{i}": (rng.normal(size=(40, 3)), rng.integers(0, 2, 40)) for i in range(2)})
    moved = to_device(data.train)
    assert moved.x.unsafe_buffer_pointer() == data.train.x.ctypes.data
    with pytest.raises(ValueError, match="read-only"):
        data.train.x[0, 0] = 1.0  # it would change the numbers of a run
    np.testing.assert_array_equal(moved.x, data.train.x)
