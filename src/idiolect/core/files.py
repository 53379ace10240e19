"""Files: atomic writes, locks, the cache folder, safe names; paths, JSON and TOML read with errors of one kind."""

import errno
import gzip
import hashlib
import json
import os
import re
import secrets
import sys
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from idiolect.core.errors import ConfigError, StoreError, kind_of, reason_of
from idiolect.core.rights import as_its_folder, private

_BYTES = 160  # of a name; most file systems take 255, and a hash and a suffix follow
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, shared: bool = False) -> Generator[BinaryIO, None, None]:
    """Write a binary file atomically: it is complete and durable at `path` when the block ends without an error.

    The bytes go to a temporary file in the same folder, which then replaces `path`; on any error the temporary
    file is removed and `path` is unchanged. shared: others may read it, as far as the umask and the folder say;
    otherwise only its owner. Raises `StoreError` when it cannot be written (full disk, missing or read-only folder).
    """
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(scratch, "xb", opener=None if shared else private) as file:
            if shared:
                as_its_folder(scratch)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, target)
        sync_folder(target.parent)
    except OSError as error:
        _discard(scratch)
        if error.filename not in (None, str(scratch), str(target)):
            raise  # an error of the block about another file
        raise StoreError(f"cannot write {target}: {reason_of(error)}") from error
    except BaseException:
        _discard(scratch)
        raise


def write_text(path: str | os.PathLike[str], text: str, *, shared: bool = False) -> None:
    """Write a UTF-8 text file atomically. shared, and what is raised: as `atomic_write`."""
    with atomic_write(path, shared=shared) as file:
        file.write(text.encode())


@contextmanager
def no_empty_folders(folder: Path) -> Generator[None]:
    """Remove a folder and its parents, if the block ends in an error, as far as they are new and empty."""
    new = [each for each in (folder, *folder.parents) if not os.path.exists(each)]
    try:
        yield
    except BaseException:
        for each in new:
            with suppress(OSError):
                each.rmdir()
        raise


def clear_scratch(folder: Path) -> None:
    """Remove the temporary files that killed writers left; no other writer may use the folder meanwhile."""
    for scratch in folder.rglob(".*.tmp"):
        _discard(scratch)


def _discard(scratch: Path) -> None:
    with suppress(OSError):
        scratch.unlink()


def sync_folder(folder: Path) -> None:
    """Make the replacement durable; errors are ignored, since not every file system can sync a folder."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def alone(path: str | os.PathLike[str], message: str) -> Generator[None, None, None]:
    """Hold a lock file inside the block; raise `StoreError(message)` if another process holds it.

    The system releases it when the process ends, however it ends; the empty file stays. Raises `StoreError` if it
    cannot be written. On a file system without locks nothing is held.
    """
    lock = FileLock(path, timeout=0, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        raise StoreError(message) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise StoreError(f"cannot write {path}: {reason_of(error)}") from error
    try:
        yield
    finally:
        lock.release()


def cache_folder() -> Path | None:
    """Return the folder for compiled programs: IDIOLECT_CACHE or the user's own; None if the variable is empty."""
    folder = os.environ.get("IDIOLECT_CACHE")
    if folder is not None:
        return Path(folder) if folder else None
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "idiolect" / "xla"


def file_name(text: str) -> str:
    """Turn a text into a safe file name: itself if it is safe, else its safe characters and a hash of it."""
    safe = _plain(text)
    return safe if safe == text and safe.strip(".") else f"{safe}-{_short(text)}"


def file_names(texts: Sequence[str]) -> list[str]:
    """Turn distinct texts into distinct, readable file names (distinct without regard to case, too)."""
    safe = [_plain(text) for text in texts]
    count = Counter(name.casefold() for name in safe)
    names = [n if count[n.casefold()] == 1 else f"{n}-{_short(t)}" for n, t in zip(safe, texts, strict=True)]
    if len({name.casefold() for name in names}) < len(names):  # one text equals another one's name with its hash
        names = [f"{n}-{_short(t, 16)}" for n, t in zip(safe, texts, strict=True)]
    return names


def _plain(text: str) -> str:
    """The letters, marks and digits of any script, and . _ -, as far as the file system can name them."""
    composed = unicodedata.normalize("NFC", text)
    safe = "".join(c if c in "._-" or unicodedata.category(c)[0] in "LMN" else "\0" for c in composed)
    try:
        os.fsencode(safe)
    except UnicodeEncodeError:
        safe = "".join(c if c.isascii() else "\0" for c in safe)
    safe = re.sub("\0+", "_", safe)[:100]
    return os.fsencode(safe)[:_BYTES].decode(sys.getfilesystemencoding(), "ignore") or "_"


def _short(text: str, digits: int = 8) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


_DEEP = "its lists or tables are nested too deeply"
_NESTS = (dict, list)
DEEPEST = 100
"""How deeply lists and tables of a file may be nested: far below the depth at which Python's own functions fail."""


def path_of(value: Any, wanted: str) -> Path:
    """Return the path that was given. Raises `ConfigError` unless it is a text or a path.

    wanted: what the argument must be, the beginning of the message: "a model is the path of its file".
    """
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise ConfigError(f"{wanted}, not {kind_of(value)}")
    return Path(value)


def plain_or_packed(path: Path) -> Path | None:
    """Return the path of a file or, where only NAME.gz is there, of that; None if neither is there."""
    return next((file for file in (path, path.with_name(f"{path.name}.gz")) if file.is_file()), None)


def unpacked(path: Path) -> str:
    """Read a text file, with its line ends as they are; a file that ends with .gz is decompressed.

    Raises `OSError`, `UnicodeDecodeError`, or `EOFError` and `zlib.error` for a damaged compressed file.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        return file.read()


def json_of(content: str | bytes | bytearray) -> Any:
    """Parse JSON. Every fault is a `ValueError`, also a nesting deeper than `DEEPEST`."""
    try:
        values = json.loads(content)
    except RecursionError:
        raise ValueError(_DEEP) from None
    if _is_deep(values):
        raise ValueError(_DEEP)
    return values


def toml_of(text: str) -> dict[str, Any]:
    """Parse TOML. Every fault is a `tomllib.TOMLDecodeError`, also a nesting deeper than `DEEPEST`."""
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError(_DEEP) from None
    if _is_deep(values):
        raise tomllib.TOMLDecodeError(_DEEP)
    return values


def _is_deep(values: Any) -> bool:
    """Whether lists and tables are nested more than `DEEPEST` times."""
    level = [values] if isinstance(values, _NESTS) else []
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for one in level:
            inner += [v for v in (one.values() if isinstance(one, dict) else one) if isinstance(v, _NESTS)]
        level = inner
    return bool(level)
