"""What one site sends about its table so that all can agree on a schema: sums and names, never a row.

This module needs only pydantic, so that the process which talks to the network can read it.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AllowInfNan, BaseModel, ConfigDict, Field, ValidationError

from idiolect.core.errors import DataError, first_of

Finite = Annotated[float, AllowInfNan(False)]


class Moments(BaseModel):
    """Of `count` numbers: their mean, and m2 = sum (x - mean)^2. constant: they are all the mean."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    count: int = Field(ge=1)
    mean: Finite
    m2: Finite = Field(ge=0)
    constant: bool = False


def pooled(parts: Sequence[Moments]) -> Moments:
    """The moments of all numbers together: mean = sum n_i mean_i / n; m2 = sum m2_i + sum n_i (mean_i - mean)^2.

    Chan, Golub and LeVeque (1983). There is one part at least.
    """
    count, origin = sum(part.count for part in parts), parts[0].mean
    mean = origin + math.fsum(part.count * (part.mean - origin) for part in parts) / count
    m2 = math.fsum([part.m2 for part in parts] + [part.count * (part.mean - mean) ** 2 for part in parts])
    constant = all(part.constant and part.mean == origin for part in parts)
    return Moments(count=count, mean=mean, m2=0.0 if constant else m2, constant=constant)


Count = Annotated[int, Field(ge=0)]
Stored = Literal["number", "boolean", "date", "duration", "text"]
"""What the site's table holds in a column."""


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class WholeNumbers(_Plain):
    """Of whole numbers: how many distinct ones; whether all have nine digits or more; the smallest and the largest,
    if nine of ten are distinct (else None): only then may they be a running number."""

    distinct: Count
    long: bool
    smallest: Finite | None = None
    largest: Finite | None = None


class Reading(_Plain):
    """A column's training values read in one way: as numbers, with a decimal comma, as dates, ..."""

    moments: Moments
    whole: WholeNumbers | None = None


class WordCounts(_Plain):
    """A column's words that enough rows have, with the number of rows; of the others only their number."""

    named: dict[str, Count]
    withheld_words: Count = 0
    withheld_rows: Count = 0


class ColumnSummary(_Plain):
    """One column's training rows. readings: by how it is read as numbers; words: if it is not.

    count, missing: rows that have a value and that have none. A column of numbers with too few values has neither
    readings nor words. Only a description (`schema.describe`) has these: few_missing: fewer rows than the site's
    smallest count have no value; they are counted as present. withheld: why nothing is said of the column. values:
    by reading, the rows of each number of a column with few different ones.
    """

    name: str
    stored: Stored
    count: Count
    missing: Count
    keep: bool = False
    readings: dict[str, Reading] = {}
    words: WordCounts | None = None
    few_missing: bool = False
    withheld: str = ""
    values: dict[str, WordCounts] = {}


class LabelSummary(_Plain):
    """The label. task: as named by the site, None if it is to be found out. whole: numbers without fractions.

    classes: training rows of each class, 0 for one that only other rows have; None if they can be no classes.
    readings: as of a column; empty if the task is a classification.
    """

    name: str
    stored: Literal["integer", "float", "boolean", "text"]
    task: Literal["classification", "regression"] | None = None
    classes: dict[str, Count] | None = None
    readings: dict[str, Reading] = {}


class TableSummary(_Plain):
    """All that leaves a site before a schema is agreed on.

    rows: its training rows. minimum: nothing that fewer rows have is reported. comma_likely: the file's values are
    separated by semicolons, so its numbers may have a decimal comma. split: its column of splits, if it has one.
    """

    format: Literal["idiolect-summary"] = "idiolect-summary"
    version: Literal[1] = 1
    site: str
    client: str
    split: str | None
    rows: Annotated[int, Field(ge=1)]
    minimum: Annotated[int, Field(ge=1)]
    comma_likely: bool = False
    label: LabelSummary
    columns: tuple[ColumnSummary, ...]

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain values, without those that are the default."""
        return {"format": self.format, "version": self.version, **self.model_dump(mode="json", exclude_defaults=True)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "the summary") -> "TableSummary":
        """The summary of plain values. Raises `DataError`, one line, if they are none."""
        try:
            return cls.model_validate_json(json.dumps(values))
        except ValidationError as error:
            raise DataError(f"{where} is no summary of this version: {first_of(error)}") from None
        except (TypeError, ValueError) as error:
            raise DataError(f"{where} is no summary: {error}") from None


def listing(summary: TableSummary) -> list[str]:
    """Return every number and every word of a summary, one line per column, before it is sent."""
    split = f"'{summary.split}' is the column of splits" if summary.split else "the site has no column of splits"
    comma = "; its values are separated by semicolons" if summary.comma_likely else ""
    lines = [
        f"site '{summary.site}': {_count(summary.rows, 'training row')}, no row itself; "
        f"words and numbers of fewer than {summary.minimum} rows are not reported",
        f"client column '{summary.client}'; {split}{comma}",
        _label(summary.label),
    ]
    return lines + [_column(column) for column in summary.columns]


def _column(column: ColumnSummary) -> str:
    parts = [f"column '{column.name}', stored as {column.stored}: {column.count} values, {column.missing} missing"]
    parts += ["fewer rows have no value than may be reported"] if column.few_missing else []
    parts += ["kept even if it looks like an identifier"] if column.keep else []
    parts += _readings(column.readings)
    parts += _words(column.words) if column.words is not None else []
    for name, values in column.values.items():
        parts += [f"read as {name}", *_words(values)]
    if column.withheld:
        parts.append(f"not reported: {column.withheld}")
    elif not column.readings and column.words is None and column.count:
        parts.append("too few values: nothing else is reported")
    return "; ".join(parts)


def _label(label: LabelSummary) -> str:
    parts = [f"label '{label.name}', stored as {label.stored}"]
    parts += [f"named a {label.task}"] if label.task else []
    if label.classes is not None:
        counts = ", ".join(f"'{name}' {count}" for name, count in label.classes.items())
        parts.append(f"every class with its training rows: {counts}")
    return "; ".join(parts + _readings(label.readings))


def _readings(readings: Mapping[str, Reading]) -> list[str]:
    parts: list[str] = []
    for name, reading in readings.items():
        moments, whole = reading.moments, reading.whole
        parts.append(
            f"all {moments.count} are {moments.mean!r} (read as {name})"
            if moments.constant
            else f"read as {name}: {moments.count} values, mean {moments.mean!r}, "
            f"sum of squared deviations {moments.m2!r}"
        )
        if moments.constant and moments.m2:
            parts.append(f"sum of squared deviations {moments.m2!r}")
        if whole is not None:
            parts.append(f"whole numbers, {whole.distinct} distinct" + (", all of nine digits" if whole.long else ""))
            if whole.smallest is not None or whole.largest is not None:
                parts.append(f"smallest {whole.smallest!r}, largest {whole.largest!r}")
    return parts


def _words(words: WordCounts) -> list[str]:
    counts = ", ".join(f"'{word}' {count}" for word, count in words.named.items())
    parts = [f"words with their rows: {counts}" if counts else "no word is reported"]
    if words.withheld_rows and not words.withheld_words:  # a description does not say how many values these are
        parts.append(f"not reported: the values of {_count(words.withheld_rows, 'row')}")
    elif words.withheld_words or words.withheld_rows:
        parts.append(
            f"not reported: {_count(words.withheld_words, 'rare word')} in {_count(words.withheld_rows, 'row')}"
        )
    return parts


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
