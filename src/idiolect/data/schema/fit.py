"""Fit one column's kind on the training rows."""

import numpy as np
import pandas as pd
from jaxtyping import Bool

from idiolect.data.schema.columns import MISSING, Category, LeftOut, Number, check_range, some
from idiolect.data.schema.identifiers import identifying_numbers, identifying_words
from idiolect.data.schema.numbers import ReadAs, guess_reading, numbered, numbers_of
from idiolect.data.schema.words import is_numeric, words_of

MOST = 200
"""Categories that have a feature of their own."""

Fitted = tuple[Number | Category | LeftOut, tuple[str, ...]]
_TOLD: dict[ReadAs, str] = {
    "number": "text is read as numbers",
    "decimal comma": "text is read as numbers with a decimal comma",
    "duration": "durations are days",
    "date": "dates are days since 1970-01-01 (UTC)",
    "date d.m.y": "dates, read as day.month.year, are days since 1970-01-01",
    "date d/m/y": "dates, read as day/month/year, are days since 1970-01-01",
    "date m/d/y": "dates, read as month/day/year, are days since 1970-01-01",
}


def fit_column(
    column: pd.Series,
    train: Bool[np.ndarray, "n"],
    *,
    categorical: bool = False,
    keep: bool = False,
    standardise: bool = True,
    comma_likely: bool = False,
) -> Fitted:
    """(the column's kind with what its training rows say, notes for the reader).

    categorical: the column's values are categories even if they are numbers. keep: never taken for an identifier.
    standardise: numbers are scaled to mean 0 and deviation 1. A column that tells nothing (constant, empty, an
    identifier) is left out. Raises `DataError` for values that are no single numbers or words.
    """
    training = column.iloc[np.flatnonzero(train)]
    reading = None if categorical else guess_reading(training, comma_likely=comma_likely)
    if reading is None:
        return _category(training, keep or categorical)
    return _number(training, reading, keep=keep, standardise=standardise)


def _left_out(name: str, why: str) -> Fitted:
    return LeftOut(name=name, why=why), (f"column '{name}' is left out: {why}",)


def _number(training: pd.Series, reading: ReadAs, *, keep: bool, standardise: bool) -> Fitted:
    name = str(training.name)
    values, _ = numbers_of(training, reading)
    check_range(values, training)
    missing = np.isnan(values)
    if bool(missing.all()):
        return _left_out(name, "it has no value in the training rows")
    why = "" if keep or reading not in ("number", "decimal comma") else identifying_numbers(name, values)
    if why:
        return _left_out(name, f"{why} (keep=[{name!r}] keeps it)")
    constant = bool(np.ptp(values[~missing]) == 0)
    if constant and not missing.any():
        return _left_out(name, "it is constant in the training rows")
    median = float(np.median(values[~missing]))
    values[missing] = median
    mean, deviation = float(values.mean()), float(values.std())
    scaled = standardise and deviation > 0
    fitted = Number(
        name=name,
        read_as=reading,
        median=median,
        mean=mean if scaled else 0.0,
        scale=deviation if scaled else 1.0,
        marks_missing=bool(missing.any()),
        constant=constant,
    )
    plain = reading == "number" and is_numeric(training)
    return fitted, () if plain else (f"column '{name}': {_TOLD[reading]}",)


def _category(training: pd.Series, keep: bool) -> Fitted:
    name = str(training.name)
    words = words_of(training)
    why = "" if keep else identifying_words(words)
    if why:
        return _left_out(name, f"{why} (keep=[{name!r}] keeps it)")
    count = numbered(words.code, len(words.distinct))
    held = np.flatnonzero(count)
    missing = bool((words.code < 0).any())
    if len(held) + missing < 2:
        return _left_out(name, "it is constant in the training rows" if len(held) else "it has no value there")
    notes: tuple[str, ...] = ()
    if len(held) > MOST:
        held = np.sort(held[np.argsort(-count[held], kind="stable")[:MOST]])
        rare = sorted(set(words.distinct.tolist()) - set(words.distinct[held].tolist()))
        notes = (f"column '{name}': only its {MOST} most frequent categories have a feature (not {some(rare)})",)
    categories: list[str] = sorted([*map(str, words.distinct[held]), *([MISSING] if missing else [])])
    return Category(name=name, categories=tuple(categories), numbers=is_numeric(training)), notes
