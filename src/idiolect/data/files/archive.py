"""Find and read the published files of a data set: plain, compressed by gzip, or in a zip or its extracted folder."""

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float64

from idiolect.core.errors import DataError, os_errors_as

VARIABLE = "IDIOLECT_DATA"


def data_folder(folder: str | Path | None, data_set: str, published: str, *, also: str | None = None) -> Path:
    """The sub-folder `data_set` of `folder` (by default of the environment variable IDIOLECT_DATA).

    published: where the original files are published, for the message of the `DataError` if there is no such folder.
    also: another name that the sub-folder may have.
    """
    named = folder if folder is not None else os.environ.get(VARIABLE)
    if not named:
        raise DataError(
            f"{data_set}: no data folder; give --data-dir (folder=) or set {VARIABLE} to a folder that holds "
            f"'{data_set}/'; {published}"
        )
    path = Path(named).expanduser() / data_set
    if not path.is_dir() and also is not None and (path.parent / also).is_dir():
        return path.parent / also
    if not path.is_dir():
        raise DataError(f"{data_set}: there is no folder {path}; {published}")
    return path


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
    with os_errors_as(f"cannot read {path}", DataError):
        raw = path.read_bytes()
    if path.suffix != ".gz":
        return raw
    if raw[:2] != b"\x1f\x8b":
        raise DataError(f"{path} is not a gzip file; {AGAIN}, or remove .gz from its name if it is not compressed")
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is truncated or damaged ({error}); {AGAIN}") from error


@dataclass(frozen=True)
class Members:
    """The files of one data set, in a folder or a zip archive; `root` is the prefix of their paths there."""

    where: str
    root: str
    names: frozenset[str]
    source: Path | zipfile.ZipFile

    def __contains__(self, name: str) -> bool:
        return self.root + name in self.names

    def read(self, name: str, published: str) -> bytes:
        """The content of one file. Raises `DataError` if it is missing (`published` ends the message) or damaged."""
        if name not in self:
            raise DataError(f"{self.where} has no file '{name}'; {published}")
        try:
            if isinstance(self.source, Path):
                return (self.source / (self.root + name)).read_bytes()
            return self.source.read(self.root + name)
        except (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise DataError(f"{self.where}: '{name}' is damaged or cannot be read ({error}); {AGAIN}") from error


def find_members(folder: Path, marker: str, published: str) -> Members:
    """Find the data set by a file that it holds, `marker`: in the folder, a sub-folder, or a .zip in the folder.

    A zip may hold the data set's zip, as the UCI archive does. Raises `DataError` if the marker is nowhere.
    """
    for root in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        if (root / marker).is_file():
            names = frozenset(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
            return Members(str(root), "", names, root)
    archives = sorted(folder.glob("*.zip"))
    if not archives:
        raise DataError(f"{folder} holds neither a .zip nor a folder with '{marker}'; {published}")
    for path in archives:
        for where, archive in _archives(path):
            if (root := _root(archive.namelist(), marker)) is not None:
                return Members(where, root, frozenset(archive.namelist()), archive)
    raise DataError(f"{', '.join(map(str, archives))}: no file '{marker}' inside; {published}")


def _archives(path: Path) -> Iterator[tuple[str, zipfile.ZipFile]]:
    """The zip, then each zip inside it, with their names for messages."""
    outer = open_zip(path, str(path))
    yield str(path), outer
    members = Members(str(path), "", frozenset(outer.namelist()), outer)
    for name in outer.namelist():
        if name.endswith(".zip") and not name.startswith("__MACOSX"):  # macOS metadata, no archive
            yield f"{path}, {name}", open_zip(io.BytesIO(members.read(name, AGAIN)), f"{path}, {name}")


def open_zip(file: Path | io.BytesIO, where: str) -> zipfile.ZipFile:
    """Open a zip archive; `where` names it in messages. Raises `DataError` if it is damaged."""
    try:
        return zipfile.ZipFile(file)
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DataError(f"{where} is truncated, damaged or not a zip file ({error}); {AGAIN}") from error


def _root(names: Sequence[str], marker: str) -> str | None:
    """The topmost folder inside an archive that holds the marker."""
    paths = [name for name in names if f"/{name}".endswith(f"/{marker}")]
    return min(paths, key=len).removesuffix(marker) if paths else None


def read_numbers(content: bytes, where: str, columns: int | None = None) -> Float64[np.ndarray, "rows columns"]:
    """Parse a text table of finite numbers separated by blanks; `columns`: the number of columns it must have."""
    try:
        table = pd.read_csv(io.BytesIO(content), sep=r"\s+", header=None, dtype=np.float64)
    except ValueError as error:  # every parser error of pandas is one
        raise DataError(f"{where} is not a table of numbers: {' '.join(str(error).split())}") from error
    values = table.to_numpy()
    if columns is not None and values.shape[1] != columns:
        raise DataError(f"{where} has {values.shape[1]} columns, expected {columns}; {AGAIN}")
    if len(bad := np.flatnonzero(~np.isfinite(values).all(axis=1))):
        raise DataError(
            f"{where} has a row with too few numbers, NaN or infinity: row {bad[0] + 1} ({len(bad)} in all); {AGAIN}"
        )
    return values
