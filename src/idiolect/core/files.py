"""Files that are either complete or absent: a reader never meets half a file, whatever kills the writer."""

import hashlib
import os
import re
import secrets
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from idiolect.core.errors import StoreError


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


def clear_scratch(folder: Path) -> None:
    """Remove what killed writers left half-written under scratch names; no other writer may be at work there."""
    for scratch in folder.rglob(".*.tmp"):
        _discard(scratch)


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


@contextmanager
def alone(path: str | os.PathLike[str], message: str) -> Generator[None, None, None]:
    """Hold a lock file inside the block; raise `StoreError(message)` if another process holds it.

    The system releases it when the process ends, however it ends. Without file locks (Windows) nothing is held.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(message) from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)


def file_name(text: str) -> str:
    """A text as a file name: itself where that is safe, else its safe part and a hash, so that no two agree."""
    plain = _plain(text)
    return plain if plain == text and plain.strip(".") else f"{plain}-{_short(text)}"


def file_names(texts: Sequence[str]) -> list[str]:
    """Different texts as readable file names, no two alike (nor alike but for upper and lower case)."""
    plain = [_plain(text) for text in texts]
    count = Counter(name.lower() for name in plain)
    names = [n if count[n.lower()] == 1 else f"{n}-{_short(t)}" for n, t in zip(plain, texts, strict=True)]
    if len({name.lower() for name in names}) < len(names):  # a name that looks like another one with its hash
        names = [f"{n}-{_short(t, 16)}" for n, t in zip(plain, texts, strict=True)]
    return names


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text)[:100] or "_"


def _short(text: str, digits: int = 8) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
