"""Encode a table's columns as features; statistics and categories are fitted on the training rows only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Float32

from idiolect.core.errors import DataError

MISSING = "(missing)"
MAX_CATEGORIES = 200

Mask = Bool[np.ndarray, "n"]


@dataclass(frozen=True)
class Encoded:
    """The features of one column: names, values, notes for the reader, and the recipe that encodes new rows."""

    names: tuple[str, ...]
    values: Float32[np.ndarray, "n features"]
    notes: tuple[str, ...]
    recipe: dict[str, Any]


def column_of(table: pd.DataFrame, name: str) -> pd.Series:
    """One column of a table whose column names are distinct."""
    return cast(pd.Series, table[name])


def is_numeric(column: pd.Series) -> bool:
    """Whether the column holds numbers or truth values."""
    return pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype)


def encode_column(column: pd.Series, train: Mask, *, categorical: bool, standardise: bool) -> Encoded:
    """Encode one column; a column that is constant in training gives no feature, and a note."""
    if categorical or not is_numeric(column):
        return _categorical(column, train)
    return _numeric(column, train, standardise)


def _dropped(name: str, count: int, why: str) -> Encoded:
    note = f"column '{name}' is dropped: {why} in the training rows"
    return Encoded((), np.empty((count, 0), np.float32), (note,), {"column": name, "kind": "dropped"})


def _numeric(column: pd.Series, train: Mask, standardise: bool) -> Encoded:
    """The value (standardised), missing ones replaced by the training median, and an indicator of missing values."""
    name = str(column.name)
    values: Float[np.ndarray, "n"] = column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    missing = np.isnan(values)
    if bool(missing[train].all()):
        return _dropped(name, len(values), "it has no value")
    median = float(np.median(values[train & ~missing]))
    values[missing] = median
    mean, deviation = float(values[train].mean()), float(values[train].std())
    has_missing = bool(missing[train].any())
    if np.ptp(values[train]) == 0 and not has_missing:
        return _dropped(name, len(values), "it is constant")
    recipe: dict[str, Any] = {"column": name, "kind": "numeric", "median": median, "missing_indicator": has_missing}
    notes: tuple[str, ...] = ()
    if missing.any():
        marked = f"marked in '{name} missing'" if has_missing else "none of them in the training rows, so not marked"
        notes = (f"column '{name}': {missing.sum()} missing values are the training median {median:g}; {marked}",)
    if standardise and deviation > 0:
        values = (values - mean) / deviation
        recipe |= {"mean": mean, "std": deviation}
    # Where all present values are equal, only the missing-value indicator carries information.
    constant = np.ptp(values[train]) == 0
    recipe["constant"] = bool(constant)
    parts = [() if constant else ((name, values),), ((f"{name} missing", missing),) if has_missing else ()]
    features = [feature for part in parts for feature in part]
    stacked = np.stack([array.astype(np.float32) for _, array in features], axis=1)
    return Encoded(tuple(label for label, _ in features), stacked, notes, recipe)


def _categorical(column: pd.Series, train: Mask) -> Encoded:
    """One-hot features of the training rows' categories; missing is a category, unseen categories are all zeros."""
    name = str(column.name)
    missing = column.isna().to_numpy(dtype=bool)
    values = column.astype(object).where(~missing, MISSING).astype(str).to_numpy(dtype=object)
    categories = sorted(set(values[train]))
    if len(categories) < 2:
        return _dropped(name, len(values), "it is constant")
    if len(categories) > MAX_CATEGORIES:
        raise DataError(
            f"column '{name}' has {len(categories)} categories in the training rows, more than "
            f"{MAX_CATEGORIES}; leave it out (ignore=['{name}']) or group its values"
        )
    codes = pd.Index(categories).get_indexer(pd.Index(values))
    onehot = codes[:, None] == np.arange(len(categories))
    notes: list[str] = []
    if missing.any():
        notes.append(f"column '{name}': {missing.sum()} missing values are the category '{MISSING}'")
    unseen = codes < 0
    if unseen.any():
        unseen_categories = sorted(set(values[unseen]))
        notes.append(
            f"column '{name}': {unseen.sum()} values outside the training rows have a category never seen there "
            f"and are all zeros ({_some(unseen_categories)})"
        )
    recipe = {"column": name, "kind": "categorical", "categories": categories}
    names = tuple(f"{name}={category}" for category in categories)
    return Encoded(names, onehot.astype(np.float32), tuple(notes), recipe)


def _some(names: Sequence[str], limit: int = 5) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
