"""Fit one column's kind on the training rows."""

import numpy as np
import pandas as pd
from jaxtyping import Bool

from idiolect.data.schema.columns import Filled, check_range
from idiolect.data.schema.decide import Fitted, category, empty_numbers, number, unfit_numbers
from idiolect.data.schema.identifiers import whole_of
from idiolect.data.schema.numbers import ReadAs, guess_reading, numbered, numbers_of
from idiolect.data.schema.words import is_numeric, words_of


def fit_column(
    column: pd.Series,
    train: Bool[np.ndarray, "n"],
    *,
    categorical: bool = False,
    keep: bool = False,
    standardise: bool = True,
    missing: Filled = "median",
    comma_likely: bool = False,
) -> Fitted:
    """(the column's kind with what its training rows say, notes for the reader).

    categorical: the column's values are categories even if they are numbers. keep: never taken for an identifier.
    standardise: numbers are scaled to mean 0 and deviation 1. missing: what of the training values stands where a
    number is missing. A column that tells nothing (constant, empty, an
    identifier) is left out. Raises `DataError` for values that are no single numbers or words.
    """
    training = column.iloc[np.flatnonzero(train)]
    reading = None if categorical else guess_reading(training, comma_likely=comma_likely)
    if reading is None:
        return _category(training, keep or categorical)
    return _number(training, reading, keep=keep, standardise=standardise, filled=missing)


def _number(training: pd.Series, reading: ReadAs, *, keep: bool, standardise: bool, filled: Filled) -> Fitted:
    name = str(training.name)
    values, _ = numbers_of(training, reading)
    check_range(values, training)
    missing = np.isnan(values)
    if bool(missing.all()):
        return empty_numbers(name)
    present = values[~missing]
    constant = bool(np.ptp(present) == 0)
    one_value = constant and not missing.any()
    unfit = unfit_numbers(name, reading, whole_of(present), keep=keep, one_value=one_value)
    if unfit is not None:
        return unfit
    fill = float(np.median(present)) if filled == "median" else float(present.mean())
    values[missing] = fill
    return number(
        name,
        reading,
        fill=fill,
        filled=filled,
        mean=float(values.mean()),
        deviation=float(values.std()),
        missing=bool(missing.any()),
        constant=constant,
        standardise=standardise,
        plain=reading == "number" and is_numeric(training),
    )


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
