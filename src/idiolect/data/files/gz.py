"""Read files that may be compressed by gzip."""

import gzip
import zlib
from pathlib import Path

from idiolect.core.errors import DataError

AGAIN = "download it again"


def find_gz(folder: Path, name: str) -> Path | None:
    """The path of `name.gz` or `name` in the folder, or None."""
    return next((path for path in (folder / f"{name}.gz", folder / name) if path.is_file()), None)


def require_gz(folder: Path, name: str, published: str) -> Path:
    """The path of `name.gz` or `name` in the folder; raises `DataError` (`published` ends it) if neither exists."""
    path = find_gz(folder, name)
    if path is None:
        raise DataError(f"missing file {folder / name}.gz (or without .gz); {published}")
    return path


def read_gz(path: Path) -> bytes:
    """The file's content, decompressed if its name ends in .gz. Raises `DataError` if it is missing or damaged."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    if path.suffix != ".gz":
        return raw
    if raw[:2] != b"\x1f\x8b":
        raise DataError(f"{path} is not a gzip file; {AGAIN}, or remove .gz from its name if it is not compressed")
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is truncated or damaged ({error}); {AGAIN}") from error
