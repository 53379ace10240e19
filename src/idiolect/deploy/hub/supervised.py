"""One supervisor per hub folder."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from idiolect.core.files import alone

SUPERVISED = ".supervised"
"""The file in a hub's folder that its supervisor locks. The system releases the lock when the process ends."""


@contextmanager
def supervised(folder: Path) -> Generator[None]:
    """Be the only supervisor of a hub's folder inside the block. Raises `StoreError` if there is another one."""
    busy = f"another 'idiolect hub run' works in '{folder}'; wait for it, or end it there with Ctrl-C"
    with alone(folder / SUPERVISED, busy):
        yield
