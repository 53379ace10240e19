"""What one site tells of its table so that all can agree on a schema: sums and names, never a row.

This module needs pydantic alone, so that the process which talks to the network can read it.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from idiolect.core.errors import DataError, first_of
from idiolect.deploy.schema.moments import Finite, Moments

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
    """A column's words that enough rows have, with the number of rows; of the others only how many there are."""

    named: dict[str, Count]
    withheld_words: Count = 0
    withheld_rows: Count = 0


class ColumnSummary(_Plain):
    """One column's training rows. readings: by how it is read as numbers; words: if it is not.

    count, missing: rows that have a value and that have none. A column of numbers with too few values has neither
    readings nor words.
    """

    name: str
    stored: Stored
    count: Count
    missing: Count
    keep: bool = False
    readings: dict[str, Reading] = {}
    words: WordCounts | None = None


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


class Summary(_Plain):
    """All that leaves a site before a schema is agreed on.

    rows: its training rows. minimum: nothing that fewer rows have is told. comma_likely: the file's values are
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
    def from_dict(cls, values: Mapping[str, Any], where: str = "the summary") -> "Summary":
        """The summary of plain values. Raises `DataError`, one line, if they are none."""
        try:
            return cls.model_validate_json(json.dumps(values))
        except ValidationError as error:
            raise DataError(f"{where} is no summary of this version: {first_of(error)}") from None
        except (TypeError, ValueError) as error:
            raise DataError(f"{where} is no summary: {error}") from None
