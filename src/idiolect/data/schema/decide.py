"""What a column becomes, decided from what is known of its training rows: no row is looked at."""

from collections.abc import Mapping

import numpy as np

from idiolect.data.schema.columns import MISSING, Category, Filled, LeftOut, Number, some
from idiolect.data.schema.identifiers import Whole, suspect_numbers, suspect_words
from idiolect.data.schema.numbers import ReadAs

MOST = 200
"""Categories that have a feature of their own."""

Fitted = tuple[Number | Category | LeftOut, tuple[str, ...]]
"""The kind of a column, and notes for the reader."""

_TOLD: dict[ReadAs, str] = {
    "number": "text is read as numbers",
    "decimal comma": "text is read as numbers with a decimal comma",
    "duration": "durations are days",
    "date": "dates are days since 1970-01-01 (UTC)",
    "date d.m.y": "dates, read as day.month.year, are days since 1970-01-01",
    "date d/m/y": "dates, read as day/month/year, are days since 1970-01-01",
    "date m/d/y": "dates, read as month/day/year, are days since 1970-01-01",
}


def left_out(name: str, why: str) -> Fitted:
    """A column that gives no feature, and a note that says why."""
    return LeftOut(name=name, why=why), (f"column '{name}' is left out: {why}",)


def empty_numbers(name: str) -> Fitted:
    """What becomes of a column of numbers, none of which is present."""
    return left_out(name, "it has no value in the training rows")


def unfit_numbers(name: str, reading: ReadAs, whole: Whole | None, *, keep: bool, one_value: bool) -> Fitted | None:
    """A column of numbers that names a row, or whose values are all equal and none missing, is left out."""
    why = "" if keep or reading not in ("number", "decimal comma") else suspect_numbers(name, whole)
    if why:
        return left_out(name, f"{why} (keep=[{name!r}] keeps it)")
    return left_out(name, "it is constant in the training rows") if one_value else None


def number(
    name: str,
    reading: ReadAs,
    *,
    fill: float,
    filled: Filled,
    mean: float,
    deviation: float,
    missing: bool,
    constant: bool,
    standardise: bool,
    plain: bool,
) -> Fitted:
    """A column of numbers. mean, deviation: of all training rows, the missing ones filled; plain: it was no text."""
    scaled = standardise and deviation > 0 and not constant
    fitted = Number(
        name=name,
        read_as=reading,
        fill=fill,
        missing=filled,
        mean=mean if scaled else 0.0,
        scale=deviation if scaled else 1.0,
        marks_missing=missing,
        constant=constant,
    )
    return fitted, () if plain else (f"column '{name}': {_TOLD[reading]}",)


def category(
    name: str, count: Mapping[str, int], *, others: int, distinct: int, missing: bool, numbers: bool, keep: bool
) -> Fitted:
    """A column of categories. count: rows of each word that may have a feature, in the words' order.

    others: rows with words that may not; distinct: words in all; missing: some rows have none; numbers: the table
    held numbers. The `MOST` most frequent words have a feature, of equally frequent ones the first.
    """
    why = "" if keep else suspect_words(sum(count.values()) + others, distinct)
    if why:
        return left_out(name, f"{why} (keep=[{name!r}] keeps it)")
    if others and not count and not missing:
        return left_out(name, "none of its words is frequent enough to be named")
    if len(count) + missing + (others > 0) < 2:
        return left_out(name, f"it {'is constant' if count else 'has no value'} in the training rows")
    words, notes = list(count), tuple[str, ...]()
    if len(words) > MOST:
        most = np.argsort(-np.array(list(count.values())), kind="stable")[:MOST]
        words = [words[place] for place in most]
        rare = sorted({*count} - {*words})
        notes = (f"column '{name}': only its {MOST} most frequent categories have a feature (not {some(rare)})",)
    categories: list[str] = sorted([*words, *([MISSING] if missing else [])])
    return Category(name=name, categories=tuple(categories), numbers=numbers), notes
