"""Files that are either complete or absent: a reader never meets half a file, whatever kills the writer."""

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from idiolect.errors import StoreError


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Generator[BinaryIO, None, None]:
    """Yield a binary file that appears at `path`, complete and on disk, when the block ends without an error.

    The bytes go to a temporary file in the same folder, which replaces `path` in one step; on any error the
    temporary file is removed and what stood at `path` stays. Raises `StoreError` when it cannot be written
    (full disk, missing or read-only folder).
    """
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(scratch, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, target)
        _sync_folder(target.parent)
    except OSError as error:
        _discard(scratch)
        if error.filename not in (None, str(scratch), str(target)):
            raise  # the block's own trouble with another file
        raise StoreError(f"cannot write {target}: {error.strerror or error}") from error
    except BaseException:
        _discard(scratch)
        raise


def _discard(scratch: Path) -> None:
    with suppress(OSError):
        scratch.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the replacement itself durable; file systems that cannot sync a folder do without."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
