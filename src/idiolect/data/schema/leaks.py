"""Columns that tell the label by themselves, and columns that repeat another."""

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Shaped

from idiolect.data.files.table import column_of
from idiolect.data.schema.columns import Category, LeftOut
from idiolect.data.schema.label import Classes
from idiolect.data.schema.schema import Schema
from idiolect.data.schema.words import words_of

FEWEST = 20
"""Rows below which nothing is said: a few rows are told apart by chance."""


def telling_columns(
    schema: Schema, x: Float[np.ndarray, "n features"], y: Shaped[np.ndarray, "n"]
) -> tuple[str, ...]:
    """The columns that tell the label of every row by themselves: perhaps the label under another name.

    x, y: encoded rows. Of a classification: equal values always have the same class, and along the sorted values the
    class changes less than twice as often as there are classes (categories: there are at most twice as many). A mark
    of missing values is such a column, too. Of a regression: the label rises, or falls, with the column in every row.
    """
    if len(y) < FEWEST:
        return ()
    is_class, found, place = isinstance(schema.label, Classes), list[str](), 0
    for column in schema.columns:
        width = len(column.features)
        part, place = x[:, place : place + width], place + width
        if isinstance(column, LeftOut):
            continue
        if isinstance(column, Category):
            values = np.where(part.any(axis=1), part.argmax(axis=1), -1)
            tells = is_class and _by_category(values, y)
        else:
            tells = any(_by_order(each, y) for each in part.T) if is_class else _in_step(part[:, 0], y)
        if tells:
            found.append(column.name)
    return tuple(found)


def repeated_columns(table: pd.DataFrame, names: list[str]) -> list[tuple[str, str]]:
    """Pairs (column, an earlier one that has the same value in every row), constant ones left out."""
    seen: dict[bytes, str] = {}
    pairs: list[tuple[str, str]] = []
    for name in names:
        words = words_of(column_of(table, name))
        if len(words.distinct) < 2:
            continue
        key = "\0".join(words.distinct).encode(errors="surrogatepass") + words.code.tobytes()
        if key in seen:
            pairs.append((name, seen[key]))
        seen.setdefault(key, name)
    return pairs


def _by_category(values: Int[np.ndarray, "n"], y: Shaped[np.ndarray, "n"]) -> bool:
    pairs = np.unique(np.stack([values, y.astype(np.int64)]), axis=1)
    categories, classes = len(np.unique(values)), len(np.unique(y))
    return pairs.shape[1] == categories and classes > 1 and categories <= 2 * classes


def _by_order(values: Float[np.ndarray, "n"], y: Shaped[np.ndarray, "n"]) -> bool:
    classes = len(np.unique(y))
    order = np.lexsort((y, values))
    changes, ties = np.diff(y[order]) != 0, np.diff(values[order]) == 0
    return classes > 1 and not bool((changes & ties).any()) and int(changes.sum()) < 2 * classes


def _in_step(values: Float[np.ndarray, "n"], y: Shaped[np.ndarray, "n"]) -> bool:
    order = np.argsort(values, kind="stable")
    steps, rises = np.diff(values[order]) > 0, np.diff(y[order])
    if steps.sum() < FEWEST / 2 or bool((rises[~steps] != 0).any()):
        return False
    return bool((rises[steps] > 0).all() or (rises[steps] < 0).all())
