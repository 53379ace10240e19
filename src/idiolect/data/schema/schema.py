"""A table's schema: what each column means, the label, the client; it encodes new rows as the training rows were."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float32, Shaped
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from idiolect.core.errors import DataError, StoreError, os_errors_as
from idiolect.core.files import json_of, path_of, write_text
from idiolect.core.memory import aligned_empty
from idiolect.data.files.table import check_column, column_of, read_table
from idiolect.data.schema.columns import Categories, Category, Column, LeftOut
from idiolect.data.schema.label import Label
from idiolect.data.schema.values import text_of


class Encoding(NamedTuple):
    """Encoded rows, and what a reader should know about them (missing values, unseen categories)."""

    x: Float32[np.ndarray, "n features"]
    notes: tuple[str, ...]


_TOGETHER = 16
"""Features that are written together: a cache line of single precision, so that memory is passed once for all."""

_ROWS = 1024
"""Rows that are written together: with `_TOGETHER` features they stay in the processor's cache."""


def _write(parts: list[Float32[np.ndarray, "n _"]], x: Float32[np.ndarray, "n features"], place: int) -> int:
    """Write features side by side into x from column `place` on, empty the list, and return the next free column."""
    end = place + sum(part.shape[1] for part in parts)
    columns = [part[:, number] for part in parts for number in range(part.shape[1])]
    for begin in range(0, len(x), _ROWS):
        rows = slice(begin, begin + _ROWS)
        for column, values in enumerate(columns, place):
            x[rows, column] = values[rows]
    parts.clear()
    return end


class Schema(BaseModel):
    """What a table's columns mean, fitted on the training rows of all clients.

    client, split: the names of these columns; split is None if the table had none. label: classes in order, or the
    mean and scale of a number. columns: every other column's kind, in the order of the features.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal["idiolect-schema"] = "idiolect-schema"
    version: Literal[1] = 1
    client: str
    split: str | None = None
    label: Label
    columns: tuple[Column, ...]

    @model_validator(mode="after")
    def _each_column_has_one_role(self) -> "Schema":
        split = () if self.split is None else (self.split,)
        names = Counter([self.client, self.label.name, *split, *(column.name for column in self.columns)])
        if twice := [name for name, count in names.items() if count > 1]:
            raise ValueError(f"column '{twice[0]}' is there twice; a column is the client, label, split or a feature")
        return self

    def named(self, client: str, label: str, split: str | None) -> "Schema":
        """The schema for a table with these names of the client, label and split columns.

        Raises `DataError` if one of them is named twice or is a column of features.
        """
        changed = {"client": client, "label": {**self.label.model_dump(), "name": label}, "split": split}
        try:
            return type(self).model_validate({**self.model_dump(), **changed})
        except ValidationError as error:
            raise DataError(f"the schema does not fit: {_first_fault(error, {})}") from None

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features, in their order."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def categories(self) -> Categories:
        """(first feature, features) of each column of categories."""
        place, found = 0, list[tuple[int, int]]()
        for column in self.columns:
            found += [(place, len(column.features))] if isinstance(column, Category) else []
            place += len(column.features)
        return tuple(found)

    @property
    def used(self) -> tuple[str, ...]:
        """The table's columns that give features; a new table needs these."""
        return tuple(column.name for column in self.columns if not isinstance(column, LeftOut))

    def encode(self, frame: pd.DataFrame) -> Float32[np.ndarray, "n features"]:
        """The rows as features, (n, features) float32: scaled, one-hot, missing values filled, as in training.

        Other columns, also client and label, do not matter. Raises `DataError` if a column is missing or holds
        something else than in training.
        """
        return self.read(frame.reset_index(drop=True)).x

    def read(self, frame: pd.DataFrame, where: str = "table") -> Encoding:
        """As `encode`, with notes for the reader. where: the table's name in errors; the index counts its rows."""
        for name in self.used:
            check_column(frame, name, "column", where)
        x, notes = aligned_empty((len(frame), len(self.features))), list[str]()
        waiting, place = list[Float32[np.ndarray, "n features"]](), 0
        for column in self.columns:
            if isinstance(column, LeftOut):
                continue
            try:
                values, column_notes = column.encode(column_of(frame, column.name))
            except DataError as error:
                raise DataError(f"{where}: {error}") from error
            notes += column_notes
            waiting.append(values)
            if sum(part.shape[1] for part in waiting) >= _TOGETHER:
                place = _write(waiting, x, place)
        _write(waiting, x, place)
        return Encoding(x, tuple(notes))

    def encode_labels(self, frame: pd.DataFrame, where: str = "table") -> Shaped[np.ndarray, "n"]:
        """The rows' labels as numbers: (n,) int32 classes or float32 scaled targets."""
        check_column(frame, self.label.name, "label column", where)
        try:
            return self.label.encode(column_of(frame, self.label.name))
        except DataError as error:
            raise DataError(f"{where}: {error}") from error

    def clients(self, frame: pd.DataFrame) -> Shaped[np.ndarray, "n"] | None:
        """Every row's client; None if the table has no such column."""
        return text_of(column_of(frame, self.client)) if self.client in frame.columns else None

    def read_file(self, path: str | PathLike[str] | pd.DataFrame) -> tuple[pd.DataFrame, str]:
        """(a file's rows, its name), categories and clients read as text where training had text."""
        as_text = [self.client] + [c.name for c in self.columns if isinstance(c, Category) and not c.numbers]
        table, where, _ = read_table(path, as_text)
        return table, where

    def to_dict(self) -> dict[str, Any]:
        """The schema as plain values."""
        return self.model_dump(mode="json")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the schema as JSON, completely or not at all."""
        write_text(path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n", shared=True)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Schema":
        """Read a schema that `save` wrote. Raises `StoreError` if the file is missing or no schema."""
        with os_errors_as(f"cannot read {path}"):
            content = path_of(path, "a schema is a Schema or the path of its file").read_bytes()
        try:
            values = json_of(content)
        except ValueError as error:
            raise StoreError(f"{path} is no schema: it is not JSON ({error})") from error
        return cls.from_dict(values, str(path))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "the schema") -> "Schema":
        """The schema of plain values. Raises `StoreError` if they are none, or it has no feature."""
        wrong = f"{where} is no schema of this version"
        try:
            schema = cls.model_validate_json(json.dumps(values), strict=True)
        except ValidationError as error:
            raise StoreError(f"{wrong}: {_first_fault(error, values)}") from None
        except RecursionError:
            raise StoreError(f"{wrong}: it is nested too deeply") from None
        if not schema.features:
            raise StoreError(f"{wrong}: none of its columns has a feature")
        return schema


def check_features(schema: Schema, notes: Sequence[str]) -> None:
    """Raise `DataError`, with the first notes on what was left out, if a schema has no feature."""
    if not schema.features:
        reasons = f": {'; '.join(notes[:5])}" if notes else ""
        raise DataError(f"no feature is left, every column is constant, empty or an identifier{reasons}")


def _first_fault(error: ValidationError, values: Any) -> str:
    """The first thing that is wrong with a schema's values, with the column that it is about by its name."""
    first = error.errors(include_url=False, include_input=False)[0]
    message = str(first.get("ctx", {}).get("error", first["msg"]))
    place: list[Any] = list(first["loc"])
    if place[:1] == ["columns"] and len(place) > 1:
        place = [f"column '{_name_of(values, place[1])}'", *place[3:]]  # the third is its kind
    elif place[:1] == ["label"]:
        place = ["label", *place[2:]]
    return ": ".join([*map(str, place), f"{message[0].lower()}{message[1:]}"])


def _name_of(values: Any, place: int) -> str:
    try:
        return str(values["columns"][place]["name"])
    except (KeyError, TypeError, IndexError):
        return f"number {place + 1}"


def describe(columns: Sequence[Column]) -> list[tuple[str, str]]:
    """(column, what is done to it) for each column, in plain words."""
    return [(column.name, _description(column)) for column in columns]


def _description(column: Column) -> str:
    if isinstance(column, LeftOut):
        return f"left out: {column.why}"
    if isinstance(column, Category):
        shown = ", ".join(column.categories[:4]) + (", …" if len(column.categories) > 4 else "")
        return f"{len(column.categories)} categories, one feature each: {shown}"
    parts = [f"read as {column.read_as}"] if column.read_as != "number" else []
    parts += [f"scaled by mean {column.mean:.4g}, deviation {column.scale:.4g}"] if column.scale != 1 else []
    parts += [f"missing ones are {column.fill:.4g} and marked"] if column.marks_missing else []
    return "; ".join(["number", *parts])
