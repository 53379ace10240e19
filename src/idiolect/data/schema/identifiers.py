"""Columns that name a row instead of describing it: a model would learn them by heart."""

import re
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from idiolect.data.schema.words import Words

FEWEST = 20
"""Rows below which nothing is suspected: in a small table many columns have distinct values."""

_NAMED = re.compile(r"(?i:(?:^|[_\s.-])(?:id|uuid|guid|index|key)$|^unnamed: 0$|^row$)|[a-z]I[dD]$")


class Whole(NamedTuple):
    """What is known of a column of whole numbers: how many are present and distinct, whether all have nine digits or
    more, and how far the largest is from the smallest."""

    present: int
    distinct: int
    long: bool
    spread: float


def identifying_words(words: Words) -> str:
    """Why a column of text is an identifier, or "": at least 9 of 10 of its rows have a word of their own."""
    return suspect_words(int((words.code >= 0).sum()), len(np.unique(words.code[words.code >= 0])))


def identifying_numbers(name: str, values: Float[np.ndarray, "n"]) -> str:
    """Why a column of numbers is an identifier, or "": see `suspect_numbers`."""
    present = values[~np.isnan(values)]
    return suspect_numbers(name, whole_of(present)) if len(present) >= FEWEST else ""


def whole_of(present: Float[np.ndarray, "n"]) -> Whole | None:
    """What there is to know of whole numbers; None if these are not all whole."""
    if len(present) == 0 or np.isinf(present).any() or not bool((present == np.round(present)).all()):
        return None
    long = bool((np.abs(present) >= 1e8).all())
    return Whole(len(present), len(np.unique(present)), long, float(np.ptp(present)))


def suspect_words(count: int, distinct: int) -> str:
    """Why a column with so many words, so many of them distinct, is an identifier, or ""."""
    if count >= FEWEST and distinct >= 0.9 * count:
        return f"an identifier: {distinct} distinct words in {count} rows"
    return ""


def suspect_numbers(name: str, whole: Whole | None) -> str:
    """Why a column of numbers is an identifier, or "".

    Whole numbers are suspected if all have nine digits or more; if they are a running number (distinct, and spread
    over no more than three times the rows); or if the column's name says id and half of the rows have their own.
    """
    if whole is None or whole.present < FEWEST:
        return ""
    count, distinct, long, spread = whole
    if distinct > 1 and long:
        return "an identifier: whole numbers of nine digits or more"
    if distinct >= 0.98 * count and spread < 3 * count:
        return "an identifier: a running number"
    if _NAMED.search(name) and distinct >= 0.5 * count:
        return f"an identifier by its name: {distinct} distinct whole numbers in {count} rows"
    return ""
