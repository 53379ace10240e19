"""What the labels of a table mean: classes in order, or a number with its mean and scale."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Shaped
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from idiolect.core.errors import DataError
from idiolect.data.schema.columns import Deviation, Held, each_once, scaled, some
from idiolect.data.schema.values import ReadAs, guess_reading, is_numeric, numbers_of, text_of

Read = Shaped[np.ndarray, "n"]

EXACT = 2.0**53
"""From here on a number in double precision does not hold every whole number, so that two labels may be one."""


class Classes(BaseModel):
    """A classification: label k is the class `classes[k]`.

    type: what the table holds: text, integers or truth values; decoded labels are of this type.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["classes"] = "classes"
    name: str
    classes: Annotated[tuple[str, ...], Field(min_length=2), AfterValidator(each_once)]
    type: Literal["text", "integer", "boolean"] = "text"

    @model_validator(mode="after")
    def _classes_are_of_the_type(self) -> "Classes":
        form = {"text": r"(?s:.*)", "integer": r"[+-]?\d{1,4000}", "boolean": "True|False"}[self.type]
        if wrong := [name for name in self.classes if not re.fullmatch(form, name)]:
            raise ValueError(f"class '{wrong[0]}' is not of the type {self.type}")
        return self

    def encode(self, labels: pd.Series) -> Int[np.ndarray, "n"]:
        """Each row's class as a number. Raises `DataError` for a missing label and for a class that is not known."""
        words = text_of(labels)
        code = pd.Index(self.classes, dtype=object).get_indexer(pd.Index(words, dtype=object))
        if (code < 0).any():
            unknown = sorted({"(missing)" if word is None else str(word) for word in words[code < 0]})
            raise DataError(
                f"column '{self.name}': {some([repr(word) for word in unknown])} is none of the classes "
                f"{some(self.classes)}, first in row {np.flatnonzero(code < 0)[0] + 1}"
            )
        return code.astype(np.int32)

    def decode(self, code: Int[np.ndarray, "n"]) -> Shaped[np.ndarray, "n"]:
        """The class of each number, in the words or the type of the table."""
        return self.values[code]

    @property
    def values(self) -> Shaped[np.ndarray, "classes"]:
        """The classes in the type of the table."""
        if self.type == "integer":
            return np.array([int(word) for word in self.classes])
        if self.type == "boolean":
            return np.array([word == "True" for word in self.classes])
        return np.array(self.classes, dtype=object)


class Target(BaseModel):
    """A regression: a model predicts (y - mean) / scale, of the training rows of all clients."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["target"] = "target"
    name: str
    mean: Held = 0.0
    scale: Deviation = 1.0
    read_as: ReadAs = "number"

    def encode(self, labels: pd.Series) -> Float[np.ndarray, "n"]:
        """Each row's scaled target. Raises `DataError` for a missing label and for one that is no number."""
        values, unread = numbers_of(labels, self.read_as)
        if np.isnan(values).any():
            row = np.flatnonzero(np.isnan(values))[0] + 1
            examples = f" ({some([repr(word) for word in unread])} is no number)" if unread else ""
            raise DataError(f"column '{self.name}': no number in row {row}{examples}")
        return self.scaled(values, labels.index)

    def scaled(
        self, values: Shaped[np.ndarray, "n"], rows: Sequence[int] | pd.Index | None = None
    ) -> Float[np.ndarray, "n"]:
        """(y - mean) / scale, computed in double precision.

        rows: each label's row, counted from 0, by default its place. Raises `DataError` for one that is too far from
        the mean for single precision.
        """
        places = range(len(values)) if rows is None else rows
        return scaled(values, self.mean, self.scale, places, self.name).astype(np.float32)

    def decode(self, scaled: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        """Targets in the user's units, in double precision."""
        return np.asarray(scaled, np.float64) * self.scale + self.mean


Label = Annotated[Classes | Target, Field(discriminator="kind")]


def read_labels(column: pd.Series, *, comma_likely: bool = False) -> tuple[Read, ReadAs]:
    """(labels as integers, floats or words, how text was read); none is missing.

    Text that all reads as numbers is numbers. Truth values are the words False and True. Whole numbers that are too
    long to be exact as numbers are words.
    """
    kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else ""
    if kind in ("m", "M") or isinstance(column.dtype, pd.DatetimeTZDtype):
        raise DataError(f"column '{column.name}' holds dates or durations; a label is a class or a number")
    if is_numeric(column) and not pd.api.types.is_bool_dtype(column.dtype):
        if not pd.api.types.is_integer_dtype(column.dtype):
            return column.to_numpy(dtype=np.float64), "number"
        if len(column) == 0 or int(column.max()) <= np.iinfo(np.int64).max:
            return column.to_numpy(dtype=np.int64), "number"
    words = text_of(column)
    reading = guess_reading(column, comma_likely=comma_likely)
    if reading in ("number", "decimal comma") and not pd.api.types.is_bool_dtype(column.dtype):
        values, unread = numbers_of(column, reading)
        if not unread:
            if not bool((values == np.round(values)).all()):
                return values, reading
            if bool((np.abs(values) < EXACT).all()):
                return values.astype(np.int64), reading
    return words.astype(str), "number"


def fit_target(name: str, train: Shaped[np.ndarray, "n"], read_as: ReadAs) -> Target:
    """The target's mean and deviation over training rows; a constant one keeps its units."""
    values = train.astype(np.float64)
    deviation = float(values.std()) if np.ptp(values) > 0 else 0.0
    return Target(name=name, mean=float(values.mean()), scale=deviation if deviation > 0 else 1.0, read_as=read_as)


def fit_classes(name: str, labels: Read, classes: Sequence[str], is_boolean: bool) -> Classes:
    """The classes in order; labels: as `read_labels` gave them."""
    kind: Any = "boolean" if is_boolean else ("text" if labels.dtype.kind in "UO" else "integer")
    return Classes(name=name, classes=tuple(classes), type=kind)
