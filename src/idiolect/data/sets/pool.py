"""A table of samples, read and checked: its clients, labels and features, and its division by client."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Shaped

from idiolect.core.errors import DataError
from idiolect.data.divide.division import divide, large_enough, of_splits
from idiolect.data.encode.labels import check_task, encode_labels, guess_task, many_classes
from idiolect.data.encode.rows import check_labels, client_names, rows_of_clients, split_of_rows
from idiolect.data.federated import SPLITS, TaskKind
from idiolect.data.files.table import Columns, Table, check_column, column_of, identity_of, read_columns, read_table
from idiolect.data.partition import Indices, Partition
from idiolect.data.schema.fit import fit_schema
from idiolect.data.schema.label import Classes, fit_classes, fit_target
from idiolect.data.schema.schema import Schema
from idiolect.data.schema.values import ReadAs


@dataclass(frozen=True, eq=False)
class Pool:
    """A checked table. identity: see `identity_of`. splits: of its own column.

    labels: as `read_labels` gives them, with how text was read. known: the schema of other data, if one is given.
    """

    table: Columns
    where: str
    client: str
    label: str
    split: str | None
    owners: Shaped[np.ndarray, "n"]
    labels: Shaped[np.ndarray, "n"]
    read_as: ReadAs
    task: TaskKind
    features: list[str]
    identity: Shaped[np.ndarray, "n"]
    splits: list[str] | None
    notes: tuple[str, ...]
    comma_likely: bool
    known: Schema | None

    def labels_of(self, used_rows: Indices) -> tuple[Shaped[np.ndarray, "n"], tuple[str, ...]]:
        """The labels as numbers, 0 in rows that are not used, and the classes that occur in those that are."""
        where = f"{self.where}, column '{self.label}'"
        if self.known is not None and isinstance(self.known.label, Classes):
            labels = column_of(self.table, self.label).iloc[used_rows].to_frame()
            codes, classes = self.known.encode_labels(labels, self.where), self.known.label.classes
        else:
            codes, classes = codes_of(self.labels[used_rows], self.task, where)
        y = np.zeros(len(self.labels), dtype=codes.dtype)
        y[used_rows] = codes
        return y, tuple(classes)

    def fit(
        self, training: Bool[np.ndarray, "n"], classes: Sequence[str], **options: Any
    ) -> tuple[Schema, tuple[str, ...]]:
        """(the table's schema, notes), fitted on these rows. classes: of `labels_of`; options: of `fit_schema`."""
        if classes:
            boolean = pd.api.types.is_bool_dtype(column_of(self.table, self.label).dtype)
            label = fit_classes(self.label, self.labels, classes, boolean)
        else:
            label = fit_target(self.label, self.labels[training], self.read_as)
        columns: dict[str, Any] = {"client": self.client, "label": label, "split": self.split}
        columns |= {"features": self.features, "comma_likely": self.comma_likely}
        return fit_schema(self.table, training, **columns, **options)


def codes_of(
    labels: Shaped[np.ndarray, "n"], task: TaskKind, where: str
) -> tuple[Shaped[np.ndarray, "n"], tuple[str, ...]]:
    """(a table's labels as numbers, its classes). Raises `DataError` if no two rows have the same class."""
    codes, classes = encode_labels(labels, task, where)
    if len(classes) == len(codes) > 2:
        raise DataError(f"{where}: every row has a label of its own; name the column that is to be predicted")
    return codes, classes


def check_roles(client: str, label: str, split: str) -> None:
    """Raise `DataError` if a column is named for two of client, label and split."""
    if twice := [column for column in (client, label, split) if (client, label, split).count(column) > 1]:
        raise DataError(f"column '{twice[0]}' is named for two of client, label and split; give each its own column")


def task_of(labels: Shaped[np.ndarray, "n"], name: str, task: str | None) -> tuple[TaskKind, list[str]]:
    """(the task as given, else guessed from a table's labels, notes on the guess)."""
    kind = check_task(task) if task is not None else guess_task(labels, whole_floats=True)
    if task is None and kind == "classification" and np.issubdtype(labels.dtype, np.integer):
        return kind, many_classes(name, len(np.unique(labels)))
    return kind, []


def read_pool(
    path: str | Path | pd.DataFrame,
    client: str,
    label: str,
    split: str,
    task: str | None,
    categorical: Sequence[str],
    ignore: Sequence[str],
    keep: Sequence[str],
    by_column: bool,
    known: Schema | None,
) -> Pool:
    """Read and check a table; arguments: see `from_table`. known: the schema of other data, or None.

    by_column: keep no more than one column of a Parquet file in memory, see `ParquetColumns`.
    """
    check_roles(client, label, split)
    read, table, where = None, None, str(path)
    if isinstance(path, pd.DataFrame) or (known is None and not by_column):
        read = read_table(path, (client,))
    elif known is not None:
        read = Table(*known.read_file(path))
    else:
        table = read_columns(path)
    if read is not None:
        table, where = read.rows, read.where
    assert table is not None
    for column, role in ((client, "client"), (label, "label")):
        check_column(table, column, f"{role} column", where)
    for column in (*categorical, *ignore, *keep):
        check_column(table, column, "column", where)
    has_split = split != "split" or (split in table.columns and split not in ignore)
    if has_split and (known is None or known.split is None or split in table.columns):
        check_column(table, split, "split column", where)
    has_split = has_split and split in table.columns
    owners, notes = client_names(column_of(table, client), where)
    comma_likely = read is not None and read.comma_likely
    labels, read_as = check_labels(column_of(table, label), where, comma_likely=comma_likely)
    not_features = {client, label, *ignore, *((split,) if has_split else ())}
    features = [str(column) for column in table.columns if column not in not_features]
    if not features:
        raise DataError(f"{where}: no feature column apart from the client and label columns")
    identity = identity_of(table)
    if known is not None:
        kind: TaskKind = "classification" if isinstance(known.label, Classes) else "regression"
    else:
        kind, task_notes = task_of(labels, label, task)
        notes = [*notes, *task_notes]
    splits = split_of_rows(column_of(table, split), where) if has_split else None
    return Pool(
        table,
        where,
        client,
        label,
        split if has_split else None,
        owners,
        labels,
        read_as,
        kind,
        features,
        identity,
        splits,
        (*(() if read is None else read.notes), *notes),
        comma_likely,
        known,
    )


def make_partition(
    source: Pool, *, minimum: int | None, test: float, validation: float, split_seed: int
) -> tuple[Partition, list[str]]:
    """The table's partition by client into splits, and notes on it."""
    rows = rows_of_clients(source.owners)
    kept, notes = large_enough({name: len(client_rows) for name, client_rows in rows.items()}, minimum, source.where)
    rows = {name: rows[name] for name in kept}
    y, _ = source.labels_of(np.sort(np.concatenate(list(rows.values()))))
    try:
        if source.splits is not None:
            return _by_split_column(rows, source.splits, source.identity, y), notes
        options: dict[str, Any] = {"test": test, "validation": validation, "split_seed": split_seed}
        return divide(list(rows.values()), source.identity, y, name="by-client", clients=list(rows), **options), notes
    except DataError as error:
        raise DataError(f"{source.where}: {error}") from error


def _by_split_column(
    rows: Mapping[str, Indices],
    splits: Sequence[str],
    identity: Shaped[np.ndarray, "n"],
    y: Shaped[np.ndarray, "n"],
) -> Partition:
    """The partition given by the table's split column."""
    split_of_row = np.asarray(splits)
    divided = {
        name: [client_rows[split_of_row[client_rows] == name] for client_rows in rows.values()] for name in SPLITS
    }
    for name in ("train", "test"):
        for client, part in zip(rows, divided[name], strict=True):
            if len(part) == 0:
                raise DataError(
                    f"client '{client}' has no {name} rows in the split column; give it some or leave it out"
                )
    return of_splits(divided, identity, y, name="split-column", clients=list(rows))


_kept: ContextVar[dict[tuple[Any, ...], Pool] | None] = ContextVar("tables that are kept", default=None)


@contextmanager
def table_kept() -> Generator[None]:
    """Read a table's file once for all its divisions: inside the block the last one that was read stays in memory.

    A file that has changed since, by its size or time, is read again.
    """
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def free_kept_table() -> None:
    """Free the table that `table_kept` holds, as soon as all its divisions are made."""
    (_kept.get() or {}).clear()


def pool_of(path: str | Path | pd.DataFrame, *arguments: Any) -> Pool:
    """`read_pool`, or what it has read before; see `table_kept`."""
    kept, known = _kept.get(), arguments[-1]
    if kept is None or known is not None or isinstance(path, pd.DataFrame):
        return read_pool(path, *arguments)
    try:
        status = Path(path).expanduser().stat()
    except (OSError, ValueError, TypeError):  # the reader says what is wrong
        return read_pool(path, *arguments)
    key = (str(path), status.st_ino, status.st_size, status.st_mtime_ns, repr(arguments))
    if key not in kept:
        kept.clear()  # free the old table before the new one is read
        kept[key] = read_pool(path, *arguments)
    return kept[key]
