"""Fit a table's schema on its training rows: decide for each column what it becomes, and leave out identifiers."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from idiolect.data.files.table import Columns, column_of
from idiolect.data.schema.columns import MISSING, Category, Column, Filled, LeftOut, Number, check_range, some
from idiolect.data.schema.label import Label
from idiolect.data.schema.schema import Schema, check_features
from idiolect.data.schema.values import ReadAs, guess_reading, is_numeric, numbered, numbers_of, words_of

_FEW = 256
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


def whole_of(present: Float[np.ndarray, "n"]) -> Whole | None:
    """What there is to know of whole numbers; None if these are not all whole."""
    for values in (present[:_FEW], present):  # the first ones are nearly always enough
        if len(values) == 0 or np.isinf(values).any() or not bool((values == np.round(values)).all()):
            return None
    long = bool((np.abs(present) >= 1e8).all())
    return Whole(len(present), len(np.unique(present)), long, float(np.ptp(present)))


def suspect_words(count: int, distinct: int) -> str:
    """Why a column of text is an identifier, or "": at least 9 of 10 of its rows have a word of their own."""
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


MOST = 200
"""Categories that have a feature of their own."""

Fitted = tuple[Number | Category | LeftOut, tuple[str, ...]]
"""The kind of a column, and notes for the reader."""

_READINGS: dict[ReadAs, str] = {
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
    return fitted, () if plain else (f"column '{name}': {_READINGS[reading]}",)


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


def fit_column(
    training: pd.Series,
    *,
    categorical: bool = False,
    keep: bool = False,
    standardise: bool = True,
    missing: Filled = "median",
    comma_likely: bool = False,
) -> Fitted:
    """(the column's kind with what its training rows say, notes for the reader).

    training: the column's training rows. categorical: its values are categories even if they are numbers. keep: never
    taken for an identifier. standardise: numbers are scaled to mean 0 and deviation 1. missing: what of the training
    values stands where a number is missing. A column without information (constant, empty, an identifier) is left
    out. Raises `DataError` for values that are no single numbers or words.
    """
    reading = None if categorical else guess_reading(training, comma_likely=comma_likely)
    if reading is None:
        return _category(training, keep or categorical)
    return _number(training, reading, keep=keep, standardise=standardise, filled=missing)


def _number(training: pd.Series, reading: ReadAs, *, keep: bool, standardise: bool, filled: Filled) -> Fitted:
    name = str(training.name)
    values, _ = numbers_of(training, reading)
    check_range(values, training)
    missing = np.isnan(values)
    gaps = bool(missing.any())
    if bool(missing.all()):
        return empty_numbers(name)
    present = values[~missing] if gaps else values
    constant = bool(np.ptp(present) == 0)
    one_value = constant and not gaps
    unfit = unfit_numbers(name, reading, whole_of(present), keep=keep, one_value=one_value)
    if unfit is not None:
        return unfit
    fill = median_of(present) if filled == "median" else float(present.mean())
    if gaps:
        values[missing] = fill
    return number(
        name,
        reading,
        fill=fill,
        filled=filled,
        mean=float(values.mean()),
        deviation=float(values.std()),
        missing=gaps,
        constant=constant,
        standardise=standardise,
        plain=reading == "number" and is_numeric(training),
    )


def median_of(values: Float[np.ndarray, "n"]) -> float:
    """The median of at least one number, none of them NaN: NumPy's, which asks for both middle places, takes six
    times as long."""
    middle = len(values) // 2
    parted = np.partition(values, middle)
    below = parted[middle] if len(values) % 2 else parted[:middle].max()
    return float((below + parted[middle]) / 2)


def _category(training: pd.Series, keep: bool) -> Fitted:
    words = words_of(training)
    count = numbered(words.code, len(words.distinct))
    held = {str(words.distinct[place]): int(count[place]) for place in np.flatnonzero(count)}
    return category(
        str(training.name),
        held,
        others=0,
        distinct=len(held),
        missing=bool((words.code < 0).any()),
        numbers=is_numeric(training),
        keep=keep,
    )


def fit_schema(
    table: Columns,
    train: Bool[np.ndarray, "n"],
    *,
    client: str,
    label: Label,
    split: str | None,
    features: Sequence[str],
    categorical: Sequence[str] = (),
    keep: Sequence[str] = (),
    standardise: bool = True,
    missing: Filled = "median",
    comma_likely: bool = False,
) -> tuple[Schema, tuple[str, ...]]:
    """(the schema, notes for the reader) of a table's columns `features`; other arguments: see `fit_column`.

    Raises `DataError` if no column has information.
    """
    columns: list[Column] = []
    notes: list[str] = []
    rows = np.flatnonzero(train)
    index = table.index.take(rows)  # of all columns; each would make its own
    for name in features:
        column = column_of(table, name)
        fitted, column_notes = fit_column(
            column if len(rows) == len(column) else pd.Series(column.array.take(rows), index, name=name),
            categorical=name in categorical,
            keep=name in keep,
            standardise=standardise,
            missing=missing,
            comma_likely=comma_likely,
        )
        columns.append(fitted)
        notes += column_notes
    schema = Schema(client=client, split=split, label=label, columns=tuple(columns))
    check_features(schema, notes)
    return schema, tuple(notes)
