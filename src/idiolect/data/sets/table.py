"""Federated data from one table: each row is a sample, with a column for its client and one for its label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Shaped
from pandas.util import hash_pandas_object

from idiolect.core.errors import DataError, require
from idiolect.data.divide.division import divide, large_enough, of_splits
from idiolect.data.encode.columns import Encoded, column_of, encode_column
from idiolect.data.encode.labels import check_task, encode_labels, guess_task
from idiolect.data.encode.table_checks import (
    check_column,
    check_features,
    check_labels,
    client_names,
    read_table,
    rows_of_clients,
    split_of_rows,
)
from idiolect.data.federated import SPLITS, FederatedData, TaskKind
from idiolect.data.partition import Indices, Partition, apply_partition, check_pool, pool_hash


def from_table(
    path: str | Path | pd.DataFrame,
    client: str = "client",
    label: str = "label",
    *,
    split: str = "split",
    partition: str | Path | Partition | None = None,
    task: str | None = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    standardise: bool = True,
    minimum: int | None = None,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
    title: str | None = None,
) -> FederatedData:
    """Your own table: a CSV, TSV or Parquet file (or a DataFrame) with a client and a label column.

    path: the file, or the DataFrame; .tsv is read with tabs, other text with commas, .gz is unpacked. client, label:
    the columns. task: classification or regression, by default guessed from the labels. title: the data's name in
    reports, by default the file's name.
    All other columns are features: numbers are standardised (unless standardise is false), text and the columns named
    in `categorical` are one-hot encoded, missing values are filled and marked. All of this is fitted on training rows
    and described in the notes. Columns named in `ignore` are left out.
    split: a column with train, validation or test for each row; without such a column rows are divided at random.
    partition: a saved `table_partition` in place of both; `DataError` if it was made for another table.
    minimum: drop clients with fewer rows than this, and say so in the notes.
    """
    split_options: dict[str, Any] = {
        "minimum": minimum,
        "test": test,
        "validation": validation,
        "split_seed": split_seed,
    }
    source = _read_pool(path, client, label, split, task, categorical, ignore)
    notes: list[str] = []
    if partition is None:
        division, notes = _make_partition(source, **split_options)
    else:
        defaults = {"minimum": None, "test": 0.25, "validation": 0.1, "split_seed": 0}
        changed = [key for key, value in split_options.items() if value != defaults[key]]
        require(not changed, f"the saved partition {partition} fixes everything: leave out {', '.join(changed)}")
        division = partition if isinstance(partition, Partition) else Partition.load(partition)
    used_rows = np.sort(np.concatenate([division.rows(name).index for name in SPLITS]))
    y, classes = source.labels_of(used_rows[used_rows < len(source.table)])
    pool = pool_hash(source.identity, y)
    try:
        check_pool(division, pool)
        encoded = _encode(source.table, source.features, used_rows, division.train.index, categorical, standardise)
    except DataError as error:
        raise DataError(f"{source.where}: {error}") from error
    read_as = f"{len(classes)} classes" if classes else "numbers"
    notes.append(f"label '{label}' is read as {source.task} ({read_as})")
    if partition is None and source.splits is not None:
        notes.append(f"train, validation and test are those of the column '{split}'")

    feature_names = [feature for column in encoded for feature in column.names]
    x = np.zeros((len(y), len(feature_names)), dtype=np.float32)
    x[used_rows] = np.concatenate([column.values for column in encoded], axis=1)
    arguments = {
        "path": source.where,
        "client": client,
        "label": label,
        "split": split,
        "partition": partition.name if isinstance(partition, Partition) else partition and str(partition),
        "task": source.task,
        "categorical": list(categorical),
        "ignore": list(ignore),
        "standardise": standardise,
        **split_options,
        "title": title,
    }
    return apply_partition(
        division,
        x,
        y,
        name=title or source.where,
        task=source.task,
        classes=classes,
        pool=pool,
        notes=[*notes, *(note for column in encoded for note in column.notes)],
        provenance={
            "source": "table",
            "arguments": arguments,
            "normalisation": {"name": "standardised" if standardise else "none", "fitted_on": "train"},
            "features": feature_names,
            "columns": [column.recipe for column in encoded],
        },
    )


def table_partition(
    path: str | Path | pd.DataFrame,
    client: str = "client",
    label: str = "label",
    *,
    split: str = "split",
    task: str | None = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    minimum: int | None = None,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
) -> Partition:
    """How `from_table` divides a table with these arguments, to be saved and used again."""
    source = _read_pool(path, client, label, split, task, categorical, ignore)
    return _make_partition(source, minimum=minimum, test=test, validation=validation, split_seed=split_seed)[0]


@dataclass(frozen=True, eq=False)
class _Pool:
    """A checked table. identity: a hash of every row, before anything is fitted. splits: of its own column."""

    table: pd.DataFrame
    where: str
    label: str
    owners: Shaped[np.ndarray, "n"]
    labels: Shaped[np.ndarray, "n"]
    task: TaskKind
    features: list[str]
    identity: Shaped[np.ndarray, "n"]
    splits: list[str] | None

    def labels_of(self, used_rows: Indices) -> tuple[Shaped[np.ndarray, "n"], tuple[str, ...]]:
        """The labels as numbers, 0 in rows that are not used, and the classes that occur in those that are."""
        codes, classes = encode_labels(self.labels[used_rows], self.task, f"{self.where}, column '{self.label}'")
        y = np.zeros(len(self.labels), dtype=codes.dtype)
        y[used_rows] = codes
        return y, tuple(classes)


def _read_pool(
    path: str | Path | pd.DataFrame,
    client: str,
    label: str,
    split: str,
    task: str | None,
    categorical: Sequence[str],
    ignore: Sequence[str],
) -> _Pool:
    if twice := [column for column in (client, label, split) if (client, label, split).count(column) > 1]:
        raise DataError(f"column '{twice[0]}' is named for two of client, label and split; give each its own column")
    table, where = read_table(path, client)
    for column, role in ((client, "client"), (label, "label")):
        check_column(table, column, f"{role} column", where)
    for column in (*categorical, *ignore):
        check_column(table, column, "column", where)
    has_split = split != "split" or (split in table.columns and split not in ignore)
    if has_split:
        check_column(table, split, "split column", where)
    owners = client_names(column_of(table, client), where)
    labels = check_labels(column_of(table, label), owners, where)
    not_features = {client, label, *ignore, *((split,) if has_split else ())}
    features = [str(column) for column in table.columns if column not in not_features]
    check_features(table, features, owners, where)
    identity = hash_pandas_object(table, index=False).to_numpy()  # pyright: ignore[reportCallIssue]
    kind = check_task(task) if task else guess_task(labels, whole_floats=True)
    splits = split_of_rows(column_of(table, split), where) if has_split else None
    return _Pool(table, where, label, owners, labels, kind, features, identity, splits)


def _make_partition(
    source: _Pool, *, minimum: int | None, test: float, validation: float, split_seed: int
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


def _encode(
    table: pd.DataFrame,
    features: Sequence[str],
    used_rows: Indices,
    train: Indices,
    categorical: Sequence[str],
    standardise: bool,
) -> list[Encoded]:
    """Encode the features of the used rows, fitted on the training rows."""
    training = np.zeros(len(table), dtype=bool)
    training[train] = True
    encoded = [
        encode_column(
            column_of(table, name).iloc[used_rows],
            training[used_rows],
            categorical=name in categorical,
            standardise=standardise,
        )
        for name in features
    ]
    if not any(column.names for column in encoded):
        raise DataError("no feature is left, every column is constant or empty in the training rows")
    return encoded


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
