"""Federated data from one table: each row is a sample, with a column for its client and one for its label."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Shaped
from pandas.util import hash_pandas_object

from idiolect.core.errors import DataError
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
from idiolect.data.federated import SPLITS, FederatedData
from idiolect.data.partition import Indices, Partition, apply_partition


def from_table(
    path: str | Path | pd.DataFrame,
    client: str = "client",
    label: str = "label",
    *,
    split: str = "split",
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
    """Your own table: a CSV or Parquet file (or a DataFrame) with a client and a label column.

    path: the file, or the DataFrame. client, label: the columns. task: classification or regression, by default
    guessed from the labels. title: the data's name in reports, by default the file's name.
    All other columns are features: numbers are standardised (unless standardise is false), text and the columns named
    in `categorical` are one-hot encoded, missing values are filled and marked. All of this is fitted on training rows
    and described in the notes. Columns named in `ignore` are left out.
    split: a column with train, validation or test for each row; without such a column rows are divided at random.
    minimum: drop clients with fewer rows than this, and say so in the notes.
    """
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

    rows = rows_of_clients(owners)
    kept, notes = large_enough({name: len(client_rows) for name, client_rows in rows.items()}, minimum, where)
    rows = {name: rows[name] for name in kept}
    used_rows = np.sort(np.concatenate(list(rows.values())))

    kind = check_task(task) if task else guess_task(labels, whole_floats=True)
    codes, classes = encode_labels(labels[used_rows], kind, f"{where}, column '{label}'")
    y = np.zeros(len(labels), dtype=codes.dtype)
    y[used_rows] = codes
    read_as = f"{len(classes)} classes" if classes else "numbers"
    notes.append(f"label '{label}' is read as {kind} ({read_as})")
    # The pool is identified by the table as read, before anything is fitted.
    identity = hash_pandas_object(table, index=False).to_numpy()  # pyright: ignore[reportCallIssue]
    splits = split_of_rows(column_of(table, split), where) if has_split else None
    try:
        if splits is not None:
            partition = _by_split_column(rows, splits, identity, y)
            notes.append(f"train, validation and test are those of the column '{split}'")
        else:
            partition = divide(
                list(rows.values()),
                identity,
                y,
                name="by-client",
                clients=list(rows),
                test=test,
                validation=validation,
                split_seed=split_seed,
            )
        encoded = _encode(table, features, used_rows, partition.train.index, categorical, standardise)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error

    feature_names = [feature for column in encoded for feature in column.names]
    x = np.zeros((len(y), len(feature_names)), dtype=np.float32)
    x[used_rows] = np.concatenate([column.values for column in encoded], axis=1)
    arguments = {
        "path": where,
        "client": client,
        "label": label,
        "split": split,
        "task": kind,
        "categorical": list(categorical),
        "ignore": list(ignore),
        "standardise": standardise,
        "minimum": minimum,
        "test": test,
        "validation": validation,
        "split_seed": split_seed,
        "title": title,
    }
    return apply_partition(
        partition,
        x,
        y,
        name=title or where,
        task=kind,
        classes=classes,
        pool=partition.pool,
        notes=[*notes, *(note for column in encoded for note in column.notes)],
        provenance={
            "source": "table",
            "arguments": arguments,
            "normalisation": {"name": "standardised" if standardise else "none", "fitted_on": "train"},
            "features": feature_names,
            "columns": [column.recipe for column in encoded],
        },
    )


def _encode(
    table: pd.DataFrame,
    features: Sequence[str],
    used: Indices,
    train: Indices,
    categorical: Sequence[str],
    standardise: bool,
) -> list[Encoded]:
    """Encode the features of the used rows, fitted on the training rows."""
    training = np.zeros(len(table), dtype=bool)
    training[train] = True
    encoded = [
        encode_column(
            column_of(table, name).iloc[used],
            training[used],
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
