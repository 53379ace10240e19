"""A table's columns to features: every statistic and category is fitted on the training rows alone."""

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
    """The features of one column: their names, values, what happened to it, and how to encode new rows."""

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
    """One column's features; constant columns give none, with a note."""
    if categorical or not is_numeric(column):
        return _categorical(column, train)
    return _numeric(column, train, standardise)


def _dropped(name: str, count: int, why: str) -> Encoded:
    note = f"column '{name}' is dropped: {why} in the training rows"
    return Encoded((), np.empty((count, 0), np.float32), (note,), {"column": name, "kind": "dropped"})


def _numeric(column: pd.Series, train: Mask, standardise: bool) -> Encoded:
    """The value (standardised), a missing one replaced by the median, and a column that tells where it was."""
    name = str(column.name)
    values: Float[np.ndarray, "n"] = column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    missing = np.isnan(values)
    if bool(missing[train].all()):
        return _dropped(name, len(values), "it has no value")
    median = float(np.median(values[train & ~missing]))
    values[missing] = median
    mean, deviation = float(values[train].mean()), float(values[train].std())
    told = bool(missing[train].any())
    if np.ptp(values[train]) == 0 and not told:
        return _dropped(name, len(values), "it is constant")
    recipe: dict[str, Any] = {"column": name, "kind": "numeric", "median": median, "missing_indicator": told}
    notes: tuple[str, ...] = ()
    if missing.any():
        marked = f"marked in '{name} missing'" if told else "none of them in the training rows, so not marked"
        notes = (f"column '{name}': {missing.sum()} missing values are the training median {median:g}; {marked}",)
    if standardise and deviation > 0:
        values = (values - mean) / deviation
        recipe |= {"mean": mean, "std": deviation}
    # All present values are equal: only where it is missing carries information.
    constant = np.ptp(values[train]) == 0
    recipe["constant"] = bool(constant)
    parts = [() if constant else ((name, values),), ((f"{name} missing", missing),) if told else ()]
    features = [feature for part in parts for feature in part]
    stacked = np.stack([array.astype(np.float32) for _, array in features], axis=1)
    return Encoded(tuple(label for label, _ in features), stacked, notes, recipe)


def _categorical(column: pd.Series, train: Mask) -> Encoded:
    """One feature a category of the training rows; missing is a category of its own, an unseen one all zeros."""
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
        new = sorted(set(values[unseen]))
        notes.append(
            f"column '{name}': {unseen.sum()} values outside the training rows have a category never seen there "
            f"and are all zeros ({_some(new)})"
        )
    recipe = {"column": name, "kind": "categorical", "categories": categories}
    names = tuple(f"{name}={category}" for category in categories)
    return Encoded(names, onehot.astype(np.float32), tuple(notes), recipe)


def _some(names: Sequence[str], limit: int = 5) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
