"""Columns that name a row instead of describing it: a model would learn them by heart."""

import re

import numpy as np
from jaxtyping import Float

from idiolect.data.schema.words import Words

FEWEST = 20
"""Rows below which nothing is suspected: in a small table many columns have distinct values."""

_NAMED = re.compile(r"(?i:(?:^|[_\s.-])(?:id|uuid|guid|index|key)$|^unnamed: 0$|^row$)|[a-z]I[dD]$")


def identifying_words(words: Words) -> str:
    """Why a column of text is an identifier, or "": at least 9 of 10 of its rows have a word of their own."""
    present = int((words.code >= 0).sum())
    distinct = len(np.unique(words.code[words.code >= 0]))
    if present >= FEWEST and distinct >= 0.9 * present:
        return f"an identifier: {distinct} distinct words in {present} rows"
    return ""


def identifying_numbers(name: str, values: Float[np.ndarray, "n"]) -> str:
    """Why a column of numbers is an identifier, or "".

    Whole numbers are suspected if all have nine digits or more; if they are a running number (distinct, and spread
    over no more than three times the rows); or if the column's name says id and half of the rows have their own.
    """
    present = values[~np.isnan(values)]
    if len(present) < FEWEST or np.isinf(present).any() or not bool((present == np.round(present)).all()):
        return ""
    distinct = len(np.unique(present))
    if distinct > 1 and bool((np.abs(present) >= 1e8).all()):
        return "an identifier: whole numbers of nine digits or more"
    if distinct >= 0.98 * len(present) and np.ptp(present) < 3 * len(present):
        return "an identifier: a running number"
    if _NAMED.search(name) and distinct >= 0.5 * len(present):
        return f"an identifier by its name: {distinct} distinct whole numbers in {len(present)} rows"
    return ""
