"""A table of new clients, encoded as the table that a run was trained on."""

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float32, Shaped

from idiolect.core.errors import ConfigError, DataError
from idiolect.data.divide.division import check_fractions, counts, shuffled
from idiolect.data.encode.columns import MISSING, column_of, is_numeric
from idiolect.data.encode.table_checks import (
    check_column,
    check_features,
    check_labels,
    client_names,
    read_table,
    rows_of_clients,
    split_of_rows,
)
from idiolect.data.federated import SPLITS, FederatedData, Split
from idiolect.data.partition import Indices


def encode_like(
    known: FederatedData,
    path: str | Path | pd.DataFrame,
    *,
    client: str = "",
    label: str = "",
    test: float = 0.25,
    split_seed: int = 0,
) -> FederatedData:
    """The clients of another table, encoded by what was fitted on the training rows of the known table.

    known: data of `from_table`. client, label: columns, by default those of the known table. A client may have a
    single row, one class, and categories that training has never seen, which become zeros. The rows of each client
    are divided by the known table's split column if this one has it too; else the fraction `test` of them, drawn from
    split_seed and the client's name, are test rows, and a client that is too small for that has training rows only.
    There are no validation rows. Raises `DataError` naming the column that is missing or of another kind, or the
    label that is no class of the known table; `ConfigError` if the known data are not from a table.
    """
    recipes, arguments = _made_of(known)
    client, label = client or arguments["client"], label or arguments["label"]
    check_fractions(test, 0.0)
    table, where = read_table(path, client)
    check_column(table, client, "client column", where)
    check_column(table, label, "label column", where)
    owners = client_names(column_of(table, client), where)
    labels = check_labels(column_of(table, label), owners, where)
    used = [recipe["column"] for recipe in recipes if recipe["kind"] != "dropped"]
    for name in used:
        check_column(table, name, "feature column", where)
    check_features(table, used, owners, where)
    try:
        x = np.concatenate([_features(column_of(table, recipe["column"]), recipe) for recipe in recipes], axis=1)
        y = _labels(labels, known, label)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    rows = rows_of_clients(owners)
    splits = split_of_rows(column_of(table, arguments["split"]), where) if arguments["split"] in table else None
    divided = [
        _divided(name, own, splits, test, split_seed) if splits is None else _as_given(name, own, splits, where)
        for name, own in rows.items()
    ]
    parts = {split: _split(x, y, [own[i] for own in divided]) for i, split in enumerate(SPLITS)}
    return FederatedData(
        name=Path(where).name,
        clients=tuple(rows),
        task=known.task,
        classes=known.classes,
        provenance={"source": "table", "arguments": {"path": where, "client": client, "label": label}},
        **parts,
    )


def _made_of(known: FederatedData) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """(the recipe of each column, the arguments) of the known table."""
    made: Mapping[str, Any] = known.provenance
    if made.get("source") != "table" or "columns" not in made:
        raise ConfigError(f"the run's data ({known.name}) are not a table, so no other table can be encoded like them")
    recipes = [{"kind": "dropped"} if recipe["kind"] == "dropped" else dict(recipe) for recipe in made["columns"]]
    return [recipe for recipe in recipes if recipe["kind"] != "dropped"], dict(made["arguments"])


def _features(column: pd.Series, recipe: Mapping[str, Any]) -> Float32[np.ndarray, "n features"]:
    """One column by its recipe, see `encode_column`."""
    if recipe["kind"] == "categorical":
        missing = column.isna().to_numpy(dtype=bool)
        values = column.astype(object).where(~missing, MISSING).astype(str).to_numpy(dtype=object)
        codes = pd.Index(recipe["categories"]).get_indexer(pd.Index(values))
        return (codes[:, None] == np.arange(len(recipe["categories"]))).astype(np.float32)
    if not is_numeric(column):
        raise DataError(f"column '{column.name}' holds text, but numbers in the run's table")
    values = column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    missing = np.isnan(values)
    values[missing] = recipe["median"]
    if "std" in recipe:
        values = (values - recipe["mean"]) / recipe["std"]
    parts = [*(() if recipe["constant"] else (values,)), *((missing,) if recipe["missing_indicator"] else ())]
    return np.stack([part.astype(np.float32) for part in parts], axis=1)


def _labels(labels: Shaped[np.ndarray, "n"], known: FederatedData, name: str) -> Shaped[np.ndarray, "n"]:
    """Numbers of the known classes, or targets."""
    if known.task == "regression":
        if not np.issubdtype(labels.dtype, np.number):
            raise DataError(f"column '{name}' holds text, but the run predicts numbers")
        return labels.astype(np.float32)
    whole = np.issubdtype(labels.dtype, np.floating) and bool((labels == np.round(labels)).all())
    texts = [str(value) for value in (labels.astype(np.int64) if whole else labels).tolist()]
    numbers = {text: number for number, text in enumerate(known.classes)}
    for row, text in enumerate(texts):
        if text not in numbers:
            shown = ", ".join(known.classes[:20])
            raise DataError(f"column '{name}' has '{text}' in row {row + 1}, no class of the run's table ({shown})")
    return np.array([numbers[text] for text in texts], np.int32)


def _divided(
    name: str, rows: Indices, splits: Sequence[str] | None, test: float, seed: int
) -> tuple[Indices, Indices, Indices]:
    """(train, validation, test) of one client, whoever else is in the table."""
    if min(counts(len(rows), test, 0.0)[::2]) < 1:
        return rows, rows[:0], rows[:0]
    return shuffled(rows, zlib.crc32(name.encode()), seed, test, 0.0)


def _as_given(name: str, rows: Indices, splits: Sequence[str], where: str) -> tuple[Indices, Indices, Indices]:
    train, validation, test = (rows[[splits[row] == split for row in rows]] for split in SPLITS)
    if len(train) == 0:
        raise DataError(f"{where}: client '{name}' has no train rows in the split column; its model needs one at least")
    return train, validation, test


def _split(x: Shaped[np.ndarray, "n f"], y: Shaped[np.ndarray, "n"], groups: Sequence[Indices]) -> Split:
    rows = np.concatenate(groups)
    return Split(x[rows], y[rows], np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64))
