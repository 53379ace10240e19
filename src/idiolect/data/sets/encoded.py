"""A table that is encoded once, into a folder, and the data of such a folder. The rows may be larger than memory."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from idiolect.core.errors import DataError
from idiolect.core.plugins import named
from idiolect.core.rights import make_folder
from idiolect.data.federated import SPLITS, FederatedData
from idiolect.data.files.folder import PIECE, finish, load_data, mapped, new_folder, with_fingerprint, write_pieces
from idiolect.data.files.table import column_of, format_of
from idiolect.data.schema.columns import LeftOut
from idiolect.data.sets.table import Encoder, Fitted, from_table, table_data

Progress = Callable[[str, float], None]
"""Receives what is done next, and the share of all that is done."""


@named("encoded")
def from_folder(path: str | Path, title: str | None = None) -> FederatedData:
    """Read federated data from a folder that `idiolect encode` wrote; they may be larger than memory.

    The features stay in their files and are read when they are used. path: the folder. title: the data's name in
    reports.
    """
    data = load_data(path)
    return data if title is None else with_fingerprint(replace(data, name=title), data.fingerprint)


def encode_table(
    path: str | Path,
    folder: str | os.PathLike[str],
    *,
    on_progress: Progress = lambda *_: None,
    **options: Any,
) -> FederatedData:
    """Encode a table into a new folder and return its data, which stay in the files; `load_data` reads them again.

    The data are those of `from_table`, to the last bit. Of a Parquet file one column at a time is in memory: in all
    about 200 bytes for each row, whatever the number of columns. It is read three times. While the folder is written
    it takes twice its size. Files of other kinds are read into memory. on_progress: receives what is done, and the
    share that is. options: as of `from_table`. Raises what that raises, and `StoreError` if the folder is not empty
    or cannot be written.
    """
    bound = signature(from_table).bind(path, **options)
    bound.apply_defaults()
    parquet = format_of(Path(path)) == "Parquet" and Path(path).suffix.lower() != ".gz"
    by_column = parquet and bound.arguments["schema"] is None
    with new_folder(folder) as partial:

        def encode(fitted: Fitted) -> tuple[Shaped[np.ndarray, "n ..."], Encoder, tuple[str, ...]]:
            return _encoded(fitted, partial, on_progress)

        on_progress("clients and columns", 0.0)
        data = table_data(encode, *bound.args, **bound.kwargs, by_column=by_column)
        on_progress("looking for leaks", 0.9)
        finish(partial, data)
    on_progress("done", 1.0)
    return load_data(folder)


def _encoded(
    fitted: Fitted, folder: Path, on_progress: Progress
) -> tuple[Shaped[np.ndarray, "n ..."], Encoder, tuple[str, ...]]:
    """Encode a table's columns one after the other, then write the rows of each split.

    In between, each feature is a file, with the rows in the order of the splits. So all files are read and written
    from their beginning to their end, whatever the order of the table's rows.
    """
    source, division = fitted.source, fitted.division
    place = np.full(len(source.table), -1)
    place[fitted.used_rows] = np.arange(len(fitted.used_rows))
    order = place[np.concatenate([division.rows(name).index for name in SPLITS])]
    scratch = make_folder(folder / "features")  # after an error it goes with the folder
    files, notes = list[Path](), list[str]()
    for number, column in enumerate(fitted.schema.columns):
        if isinstance(column, LeftOut):
            continue
        on_progress("encoding", 0.3 + 0.4 * number / len(fitted.schema.columns))
        try:
            values, column_notes = column.encode(column_of(source.table, column.name).iloc[fitted.used_rows])
        except DataError as error:
            raise DataError(f"{source.where}: {error}") from error
        notes += column_notes
        for feature in values.T:
            files.append(scratch / str(len(files)))
            feature[order].tofile(files[-1])
    names, begin = iter(SPLITS), 0

    def encoder(rows: Shaped[np.ndarray, "m"]) -> Float[np.ndarray, "m features"]:
        """The features of the next split, of these rows, written to its file and mapped into memory."""
        nonlocal begin
        name = next(names)
        on_progress("writing rows", 0.7 + 0.2 * begin / len(order))
        target, first = folder / f"{name}.x.npy", begin
        write_pieces(target, (len(rows), len(files)), np.dtype(np.float32), _pieces(files, first, first + len(rows)))
        begin += len(rows)
        if name == SPLITS[-1]:
            shutil.rmtree(scratch)
        return mapped(target)

    return np.arange(len(source.table)), encoder, tuple(notes)


def _pieces(files: list[Path], first: int, end: int) -> Iterator[Float[np.ndarray, "_ features"]]:
    """The rows first..end - 1 of features that are in one file each, some at a time."""
    count = max(1, PIECE // (4 * len(files)))
    for begin in range(first, end, count):
        rows = min(count, end - begin)
        parts = [np.fromfile(file, np.float32, rows, offset=4 * begin) for file in files]
        yield np.stack(parts, axis=1)
