"""Hand a value with large arrays to other processes of this machine: they map the same memory, without copies.

The arrays are in memory that the system shows as a file of the process that wrote it. Nothing is written to a disk,
and nothing is left when that process ends, however it ends. Only Linux has it.
"""

import mmap
import os
import pickle
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

_ALIGNED = 64  # JAX takes arrays without a copy if they begin at a multiple of 64 bytes


@dataclass(frozen=True)
class Handed:
    """A value, its arrays in shared memory. form: the value without them; spans: (first byte, bytes) of each."""

    place: str
    form: bytes
    spans: Sequence[tuple[int, int]]

    def take(self) -> Any:
        """The value, in another process, while the block of `hand_over` runs. Its arrays are read-only.

        They stay readable when the block ends. Raises `OSError` where the memory cannot be opened.
        """
        with open(self.place, "rb") as file:
            mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return pickle.loads(self.form, buffers=[mapped[first : first + size] for first, size in self.spans])


@contextmanager
def hand_over(value: object) -> Generator[Handed | None]:
    """Share a value with processes that are started inside the block; None where that is not possible.

    It is not where there is no value, the system cannot share, memory is short, or a part cannot be copied.
    """
    memory = _memory()
    try:
        handed = None if memory is None or value is None else _written(value, memory)
        del value  # the copy is enough
        yield handed
    finally:
        if memory is not None:
            memory.close()


def _memory() -> BinaryIO | None:
    try:
        return os.fdopen(os.memfd_create("idiolect"), "wb")  # pyright: ignore[reportAttributeAccessIssue]
    except (AttributeError, OSError):
        return None


def _written(value: object, memory: BinaryIO) -> Handed | None:
    arrays: list[pickle.PickleBuffer] = []
    spans: list[tuple[int, int]] = []
    try:
        form = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
        memory.write(bytes(_ALIGNED))  # memory without a byte cannot be mapped
        for array in arrays:
            raw = array.raw()
            memory.write(bytes(-memory.tell() % _ALIGNED))
            spans.append((memory.tell(), raw.nbytes))
            memory.write(raw)
        memory.flush()
    except (pickle.PicklingError, TypeError, AttributeError, OSError, MemoryError):
        return None
    return Handed(f"/proc/{os.getpid()}/fd/{memory.fileno()}", form, tuple(spans))
