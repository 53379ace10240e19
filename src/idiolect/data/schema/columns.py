"""The kinds of columns: each turns a column of a table into features, with what was fitted on training rows."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float32
from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, model_validator

from idiolect.core.errors import DataError
from idiolect.data.schema.values import ReadAs, numbers_of, words_of

MISSING = "(missing)"
LARGEST = 1e30
"""Beyond it a feature's square leaves single precision."""

Held = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
"""A number that a schema may hold: finite, and no larger than a value of a table may be."""

Deviation = Annotated[float, Field(gt=0, le=LARGEST, allow_inf_nan=False)]
"""What values are divided by."""

Filled = Literal["median", "mean"]
"""Of the training values that are present: what stands where a number is missing."""

Encoded = tuple[Float32[np.ndarray, "n features"], tuple[str, ...]]
"""The features of a column's rows, and notes for the reader."""


Categories = tuple[tuple[int, int], ...]
"""(first feature, features) of columns of categories; each of the features is 1 where a row has that category."""


def each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names. Raises `ValueError` if one of them is there twice."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"'{twice[0]}' is there twice")
    return names


class _Kind(BaseModel):
    """What every kind has: the column's name in the table."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str


class Number(_Kind):
    """Numbers, truth values (0, 1), dates or durations (days): (x - mean) / scale, in double precision.

    Missing values are `fill`, the training median or mean (`missing`; older files have `median`); where training rows
    have some, a second feature marks them with 1. A column with equal values in all training rows that have one is
    `constant`: only the mark remains.
    """

    kind: Literal["number"] = "number"
    read_as: ReadAs = "number"
    fill: Held = Field(validation_alias=AliasChoices("fill", "median"))
    missing: Filled = "median"
    mean: Held = 0.0
    scale: Deviation = 1.0
    marks_missing: bool = False
    constant: bool = False

    @model_validator(mode="after")
    def _has_a_feature(self) -> "Number":
        if self.constant and not self.marks_missing:
            raise ValueError("it is constant and marks nothing as missing, so it has no feature")
        return self

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        return (*(() if self.constant else (self.name,)), *((f"{self.name} missing",) if self.marks_missing else ()))

    def encode(self, column: pd.Series) -> Encoded:
        """The features of some rows.

        Raises `DataError` for infinite values, those beyond `LARGEST` before or after scaling, and a column all of
        whose entries are words.
        """
        values, unread = numbers_of(column, self.read_as)
        check_range(values, column)
        missing = np.isnan(values)
        if unread and missing.all():
            raise DataError(
                f"column '{self.name}' has no number but {some([repr(word) for word in unread])}; it had numbers in "
                f"training (read as {self.read_as}): write them so, or leave the cells of missing values empty"
            )
        notes: list[str] = []
        gaps = bool(missing.any())
        if gaps:
            values[missing] = self.fill
        parts = [] if self.constant else [scaled(values, self.mean, self.scale, column.index, self.name)]
        parts += [missing] if self.marks_missing else []
        if gaps:
            marked = f"marked in '{self.name} missing'" if self.marks_missing else "not marked, as training had none"
            words = f" ({some([repr(word) for word in unread])} are read as missing)" if unread else ""
            notes.append(
                f"column '{self.name}': {missing.sum()} missing values are the training {self.missing} "
                f"{self.fill:g}; {marked}{words}"
            )
        single = [part.astype(np.float32) for part in parts]
        return single[0][:, None] if len(single) == 1 else np.stack(single, axis=1), tuple(notes)


class Category(_Kind):
    """Text or named categories: one feature per category of the training rows, 1 where the row has it.

    Missing is a category where training rows lack values. Categories that training never saw are all zeros, as are
    all but the most frequent `MOST` of them. numbers: the table held numbers, so a file is read so again.
    """

    kind: Literal["category"] = "category"
    categories: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(each_once)]
    numbers: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(f"{self.name}={category}" for category in self.categories)

    def encode(self, column: pd.Series) -> Encoded:
        """The features of some rows."""
        words = words_of(column)
        known = pd.Index(self.categories, dtype=object)
        place = np.append(known.get_indexer(pd.Index(words.distinct, dtype=object)), known.get_indexer([MISSING]))
        code = place[words.code]
        notes: list[str] = []
        missing = int((words.code < 0).sum())
        if missing and MISSING in self.categories:
            notes.append(f"column '{self.name}': {missing} missing values are the category '{MISSING}'")
        unseen = int((code < 0).sum())
        if unseen:
            seen_words = np.append(words.distinct, MISSING)[np.unique(words.code[code < 0])]
            notes.append(
                f"column '{self.name}': {unseen} values are of no category that has a feature and are all zeros "
                f"({some(seen_words.tolist())})"
            )
        return (code[:, None] == np.arange(len(self.categories))).astype(np.float32), tuple(notes)


class LeftOut(_Kind):
    """A column that gives no feature, and why."""

    kind: Literal["left out"] = "left out"
    why: str

    @property
    def features(self) -> tuple[str, ...]:
        """None."""
        return ()

    def encode(self, column: pd.Series) -> Encoded:
        """No features."""
        return np.empty((len(column), 0), np.float32), ()


Column = Annotated[Number | Category | LeftOut, Field(discriminator="kind")]


def check_range(values: np.ndarray, column: pd.Series) -> None:
    """Raise `DataError` if a value of the column is infinite or beyond `LARGEST`; its index counts rows from 0."""
    if _furthest(values) <= LARGEST:
        return
    for wrong, problem in ((np.isinf(values), "is infinite"), (np.abs(values) > LARGEST, f"is beyond {LARGEST:g}")):
        if wrong.any():
            row = int(column.index[np.flatnonzero(wrong)[0]]) + 1
            raise DataError(
                f"column '{column.name}' {problem} in row {row} ({wrong.sum()} in all); replace by a number or leave "
                "the cell empty"
            )


def _furthest(values: np.ndarray) -> float:
    """The largest absolute value, without NaN; 0 if there is none."""
    if len(values) == 0:
        return 0.0
    low, high = values.min(), values.max()
    if np.isnan(low):
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    return 0.0 if np.isnan(low) else float(max(-low, high))


def scaled(values: np.ndarray, mean: float, scale: float, rows: Sequence[int] | pd.Index, name: str) -> np.ndarray:
    """(values - mean) / scale, in double precision.

    rows: each value's row, counted from 0; name: the column's. Raises `DataError` if a result is beyond `LARGEST`.
    """
    with np.errstate(over="ignore"):
        result = np.subtract(values, mean, dtype=np.float64)
        result /= scale
    if _furthest(result) > LARGEST:
        far = np.flatnonzero(np.abs(result) > LARGEST)
        raise DataError(
            f"column '{name}': {values[far[0]]:g} in row {int(rows[far[0]]) + 1} is too far from the training mean "
            f"{mean:g}, for a deviation of {scale:g}; replace it or leave the row out"
        )
    return result


def some(names: Sequence[str], limit: int = 5) -> str:
    """The first names, and the number of further ones."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
