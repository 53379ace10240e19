"""A table of new clients, encoded by the schema of the table that a run was trained on."""

import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Shaped

from idiolect.core.errors import ConfigError, DataError
from idiolect.data.divide.division import check_fractions, is_enough, shuffled
from idiolect.data.encode.rows import client_names, rows_of_clients, split_of_rows
from idiolect.data.federated import SPLITS, FederatedData, Split
from idiolect.data.files.table import check_column, column_name, column_of
from idiolect.data.partition import Indices
from idiolect.data.schema.label import Classes, Target
from idiolect.data.schema.schema import Schema


def encode_like(
    known: FederatedData,
    path: str | Path | pd.DataFrame,
    *,
    client: str = "",
    label: str = "",
    test: float = 0.25,
    split_seed: int = 0,
) -> FederatedData:
    """Encode the clients of another table by the schema of the known data: nothing is fitted.

    A client may have a single row, one class, and categories that training has never seen, which become zeros. The
    rows of each client are divided by the known table's split column if this one has it too. Otherwise the fraction
    `test` of them, drawn from split_seed and the client's name, are test rows, and a client that is too small for
    that has only training rows. There are no validation rows.

    Args:
        known: Data of `from_table`.
        client: The client column, by default that of the known table.
        label: The label column, by default that of the known table.
        test: The fraction of test rows.

    Raises:
        DataError: If a column is missing or of another kind, or a label is no class of the known table.
        ConfigError: If the known data are not from a table.
    """
    schema = _schema_of(known, client, label)
    table, where = schema.read_file(path)
    check_column(table, schema.client, "client column", where)
    owners, client_notes = client_names(column_of(table, schema.client), where)
    data = encode_rows(schema, table, where, owners, notes=client_notes, test=test, split_seed=split_seed)
    return replace(data, task=known.task, classes=known.classes, target=known.target)


def encode_rows(
    schema: Schema,
    table: pd.DataFrame,
    where: str,
    owners: Shaped[np.ndarray, "n"],
    *,
    notes: Sequence[str] = (),
    test: float = 0.25,
    validation: float = 0.0,
    split_seed: int = 0,
) -> FederatedData:
    """Rows of the given clients as data, encoded by a schema and divided within each client: see `encode_like`.

    where: the table's name. The schema's split column, if the table has it, decides; else the fractions.
    """
    check_fractions(test, validation, untested=True)
    if len(table) == 0:
        raise DataError(f"{where}: the table has no rows")
    y = schema.encode_labels(table, where)
    encoding = schema.read(table, where)
    rows = rows_of_clients(owners)
    has_split = schema.split is not None and schema.split in table.columns
    splits = split_of_rows(column_of(table, str(schema.split)), where) if has_split else None
    fractions: dict[str, Any] = {"test": test, "validation": validation, "split_seed": split_seed}
    divided = [divide_alone(name, own, splits, where, **fractions) for name, own in rows.items()]
    train, validated, tested = (_split(encoding.x, y, [own[i] for own in divided]) for i in range(len(SPLITS)))
    return FederatedData(
        name=where,
        train=train,
        validation=validated,
        test=tested,
        clients=tuple(rows),
        task="classification" if isinstance(schema.label, Classes) else "regression",
        classes=schema.label.classes if isinstance(schema.label, Classes) else (),
        notes=(*notes, *encoding.notes),
        provenance={"source": "table", "arguments": {"path": where, **fractions}},
        schema=schema,
        target=schema.label if isinstance(schema.label, Target) else None,
    )


def divide_alone(
    name: str,
    rows: Indices,
    splits: Sequence[str] | None,
    where: str,
    *,
    test: float,
    validation: float,
    split_seed: int,
) -> tuple[Indices, Indices, Indices]:
    """(train, validation, test) of one client's rows, independent of other clients.

    splits: of every row of the table, as its own column has them; None: drawn from the seed and the client's name. A
    client that is too small for the fractions has training rows only.
    """
    if splits is not None:
        return _as_given(name, rows, splits, where)
    if not is_enough(len(rows), test, validation):
        return rows, rows[:0], rows[:0]
    return shuffled(rows, zlib.crc32(name.encode()), split_seed, test, validation)


def _schema_of(known: FederatedData, client: str, label: str) -> Schema:
    """The known data's schema, with other names of the client and label columns."""
    schema = known.schema
    if schema is None:
        raise ConfigError(f"the run's data ({known.name}) have no schema, so no table can be encoded like them")
    client, label = column_name(client, "client column"), column_name(label, "label column")
    return schema.named(client or schema.client, label or schema.label.name, schema.split)


def _as_given(name: str, rows: Indices, splits: Sequence[str], where: str) -> tuple[Indices, Indices, Indices]:
    train, validation, test = (rows[[splits[row] == split for row in rows]] for split in SPLITS)
    if len(train) == 0:
        raise DataError(f"{where}: client '{name}' has no train rows in the split column; it needs one at least")
    return train, validation, test


def _split(x: Shaped[np.ndarray, "n f"], y: Shaped[np.ndarray, "n"], groups: Sequence[Indices]) -> Split:
    rows, ends = np.concatenate(groups), np.cumsum([len(group) for group in groups])
    return Split(x[rows], y[rows], np.concatenate([[0], ends]).astype(np.int64))
