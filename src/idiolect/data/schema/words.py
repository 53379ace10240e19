"""The values of a column as words: what a person would write for them."""

import unicodedata
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int, Shaped

from idiolect.core.errors import DataError


class Words(NamedTuple):
    """The distinct words of a column, and which of them each row has; -1 where the value is missing or blank."""

    distinct: Shaped[np.ndarray, "words"]
    code: Int[np.ndarray, "n"]


def is_numeric(column: pd.Series) -> bool:
    """Whether the column holds numbers or truth values; pandas' categories never are numbers."""
    return pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype)


def words_of(column: pd.Series) -> Words:
    """The column as words: text without blanks around it (Unicode's NFC), whole numbers without a point.

    Raises `DataError` where a value is no word: a list, bytes.
    """
    try:
        code, values = pd.factorize(column)
    except TypeError:
        held = next(value for value in column if not _hashable(value))
        raise DataError(f"column '{column.name}' holds a {type(held).__name__}, not one value a row") from None
    distinct = np.array([_word(value, str(column.name)) for value in values], dtype=object)
    words, again = np.unique(distinct, return_inverse=True) if len(distinct) else (distinct, np.zeros(0, np.int64))
    blank = np.flatnonzero(words == "")
    again = np.where(again == blank[0], -1, again - 1) if len(blank) else again  # "" sorts first
    words = words[1:] if len(blank) else words
    return Words(words.astype(object), np.append(again, -1)[code])


def text_of(column: pd.Series) -> Shaped[np.ndarray, "n"]:
    """Every row's word; None where it is missing."""
    words = words_of(column)
    return np.array([*words.distinct, None], dtype=object)[words.code]


def _word(value: object, name: str) -> str:
    if isinstance(value, bytes | bytearray | list | dict | set | np.ndarray):
        raise DataError(f"column '{name}' holds {type(value).__name__}, not numbers or text")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return unicodedata.normalize("NFC", str(value).strip())


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
