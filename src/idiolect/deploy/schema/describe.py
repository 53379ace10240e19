"""Describe a site's training rows by sums that no small group of rows can be read from.

It is a `TableSummary` with the label among the columns, and with these rules; k is the site's smallest count:
- a column with 1 to k - 1 values is withheld. 1 to k - 1 missing values are counted as the column's mean, or as its
  most frequent value, so that no total says how many they are;
- values of fewer than k rows are not named. Their rows are one sum, of k rows at least and of two values at least: if
  need be, the least frequent values that could be named are added to it (complementary suppression);
- a column of at most `FEW` different numbers is counted by number, because its mean and its deviation would give the
  counts; it has neither of the two if a number is not named;
- if a single row has nearly all of a column's sum of squares, the column has no mean and no deviation;
- a histogram (`cells`) has no cell of 1 to k - 1 rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from idiolect.core.errors import require
from idiolect.data.files.table import column_of
from idiolect.data.schema.columns import check_range
from idiolect.data.schema.values import numbered, numbers_of, possible_readings, words_of
from idiolect.deploy.schema.summarise import OpenedTable, opened, reading_of, stored_as
from idiolect.deploy.schema.summary import ColumnSummary, LabelSummary, Reading, TableSummary, WordCounts

FEW = 10
"""Different numbers of a column that is counted by number."""
DOMINANT = 0.9
"""The largest share of a sum of squares that a single row may have."""
BLOCKS, HALVINGS = 32, 5
"""The blocks of a grid between its open ends, and how often a block is halved at most."""

Cell = tuple[float, float, int]
"""The rows with low <= value < high; the first and the last cell are open."""


@dataclass(frozen=True)
class Described:
    """A description. values: column -> reading -> its numbers, of the columns that may have a histogram; these stay
    at the site."""

    summary: TableSummary
    values: Mapping[str, Mapping[str, Float[np.ndarray, "n"]]] = field(
        default_factory=dict[str, Mapping[str, Float[np.ndarray, "n"]]]
    )

    def numbers(self, column: str, reading: str) -> Float[np.ndarray, "n"] | None:
        """A column's numbers, read so; None if it may have no histogram.

        A column that is stored as numbers or dates is read in one way only.
        """
        found = self.values.get(column, {})
        return next(iter(found.values())) if len(found) == 1 else found.get(reading)


def describe(
    table: str | Path | pd.DataFrame,
    *,
    site: str,
    client: str = "client",
    label: str = "label",
    split: str = "split",
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    minimum: int = 5,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
) -> Described:
    """Describe this site's training rows; arguments as of `summarise`. minimum: k, see the module.

    Raises `DataError` as `from_table` does.
    """
    require(minimum >= 1, f"minimum = {minimum} must be at least 1 row")
    fractions = {"test": test, "validation": validation, "split_seed": split_seed}
    named = (*categorical, *ignore)
    read = opened(table, site=site, client=client, label=label, split=split, named=named, ignore=ignore, **fractions)
    columns, values = list[ColumnSummary](), dict[str, Mapping[str, Float[np.ndarray, "n"]]]()
    for name in (label, *read.features):
        column = column_of(read.training, name)
        one, numbers = _column(column, minimum, is_category=name in categorical)
        columns.append(one)
        if numbers:
            values[name] = numbers
    return Described(_summary(read, site, client, label, minimum, columns), values)


def _summary(
    read: OpenedTable, site: str, client: str, label: str, minimum: int, columns: Sequence[ColumnSummary]
) -> TableSummary:
    return TableSummary(
        site=site,
        client=client,
        split=read.split,
        rows=len(read.train),
        minimum=minimum,
        comma_likely=read.comma_likely,
        label=LabelSummary(name=label, stored="text"),
        columns=tuple(columns),
    )


def _column(
    column: pd.Series, minimum: int, *, is_category: bool
) -> tuple[ColumnSummary, dict[str, Float[np.ndarray, "n"]]]:
    """(a column's description, its numbers by reading if it may have a histogram)."""
    name, stored = str(column.name), stored_as(column)
    readings = [] if is_category else list(possible_readings(column))
    read: dict[str, Float[np.ndarray, "n"]] = {reading: numbers_of(column, reading).values for reading in readings}
    for numbers in read.values():
        check_range(numbers, column)
    words = words_of(column) if not readings else None
    counts = None if words is None else numbered(words.code, len(words.distinct))
    present = int((~np.isnan(read[readings[0]])).sum() if counts is None else counts.sum())
    missing = len(column) - present
    if 0 < present < minimum:
        why = f"fewer than {minimum} rows have a value"
        return ColumnSummary(name=name, stored=stored, count=0, missing=0, withheld=why), {}
    few = 0 < missing < minimum
    about = ColumnSummary(
        name=name,
        stored=stored,
        count=len(column) if few else present,
        missing=0 if few else missing,
        few_missing=few,
    )
    added = missing if few else 0
    if words is not None and counts is not None:
        held = {str(word): int(rows) for word, rows in zip(words.distinct, counts, strict=True) if rows > 0}
        return about.model_copy(update={"words": protected(held, added, minimum)}), {}
    return _numbers(about, {key: numbers[~np.isnan(numbers)] for key, numbers in read.items()}, added, minimum)


def _numbers(
    about: ColumnSummary, read: Mapping[str, Float[np.ndarray, "n"]], added: int, minimum: int
) -> tuple[ColumnSummary, dict[str, Float[np.ndarray, "m"]]]:
    """As `_column`, of a column of numbers without the missing ones; added: rows to be counted as a number."""
    first = next(iter(read.values()))
    if not len(first):
        return about, {}
    if len(np.unique(first)) <= FEW:
        values, moments = dict[str, WordCounts](), dict[str, Reading]()
        for reading, numbers in read.items():
            distinct, counts = np.unique(numbers, return_counts=True)
            held = {repr(float(one)): int(rows) for one, rows in zip(distinct, counts, strict=True)}
            values[reading] = protected(held, added, minimum)
            if not values[reading].withheld_rows:
                most = float(max(held, key=lambda value: (held[value], value)))
                moments[reading] = _moments(np.append(numbers, np.full(added, most)))
        complete = moments if len(moments) == len(read) else {}
        return about.model_copy(update={"values": values, "readings": complete}), {}
    filled = {str(key): np.append(numbers, np.full(added, numbers.mean())) for key, numbers in read.items()}
    squares = [(numbers - numbers.mean()) ** 2 for numbers in filled.values()]
    if any(one.max() > DOMINANT * one.sum() for one in squares):
        why = "a single row has nearly all of the sum of squares"
        return about.model_copy(update={"count": 0, "missing": 0, "few_missing": False, "withheld": why}), {}
    moments = {reading: _moments(numbers) for reading, numbers in filled.items()}
    return about.model_copy(update={"readings": moments}), filled


def _moments(values: Float[np.ndarray, "n"]) -> Reading:
    """Mean and sum of squares; nothing of single values, such as the smallest one."""
    return Reading(moments=reading_of(values).moments)


def protected(held: Mapping[str, int], added: int, minimum: int) -> WordCounts:
    """The counts that may be sent.

    Args:
        held: value -> its rows, at least 1.
        added: rows without a value that are counted as the most frequent one; 0 if their number may be known.
        minimum: k, see the module.

    Returns:
        The named values. `withheld_rows` are those of all others: 0, or at least k rows of at least two values. How
        many values these are is not said.
    """
    named = {value: rows for value, rows in held.items() if rows >= minimum}
    others = [rows for rows in held.values() if rows < minimum]
    if named:
        named[max(named, key=lambda value: (named[value], value))] += added
    else:
        others.append(added)
    while others and named:
        least = min(named, key=lambda value: (named[value], value))
        # Whoever knows this rule knows that none of the others has more rows than the least that is named. Each may
        # still have a single row if the rest of them can have the whole sum.
        if len(others) > 1 and sum(others) >= minimum and sum(others) - (len(others) - 1) * named[least] <= 1:
            break
        others.append(named.pop(least))
    rest = sum(others)
    return WordCounts(named=dict(sorted(named.items())), withheld_rows=rest)


def cells(values: Float[np.ndarray, "n"], start: float, width: float, minimum: int) -> list[Cell]:
    """A histogram without a cell of 1 to minimum - 1 rows.

    Coarse to fine: `BLOCKS` blocks of this width from `start`, with an open one at each end, are joined from the left
    until each has enough rows or none. A block that stands by itself is halved, as often as `HALVINGS`, where each
    half has enough rows or none. Edges depend on the grid and not on single values.

    Args:
        values: finite numbers, at least `minimum`.
        start: where the first block begins.
        width: of a block, > 0.
        minimum: k, see the module.
    """
    edges = start + width * np.arange(BLOCKS + 1)
    rows = np.bincount(np.searchsorted(edges, values, side="right"), minlength=BLOCKS + 2)
    bounds = [-np.inf, *edges.tolist(), np.inf]
    joined, begin, count = list[tuple[int, int, int]](), 0, 0
    for place, held in enumerate(rows.tolist()):
        count += held
        if count == 0 or count >= minimum:
            joined.append((begin, place + 1, count))
            begin, count = place + 1, 0
    if count:  # what is left belongs to the last block with rows, and so do those between
        end = int(np.flatnonzero(rows)[-1]) + 1
        while joined:
            begin, _, held = joined.pop()
            count += held
            if held:
                break
        joined += [(begin, end, count), *((place, place + 1, 0) for place in range(end, BLOCKS + 2))]
    found = list[Cell]()
    for first, end, held in joined:
        low, high = bounds[first], bounds[end]
        inside = values[(values >= low) & (values < high)]
        if end - first > 1 or not np.isfinite([low, high]).all():
            found.append((low, high, held))
        else:
            found += _halved(inside, low, high, minimum, HALVINGS)
    return found


def _halved(values: Float[np.ndarray, "n"], low: float, high: float, minimum: int, left: int) -> list[Cell]:
    middle = (low + high) / 2
    below = values < middle
    counts = int(below.sum()), int((~below).sum())
    if left == 0 or not low < middle < high or any(0 < count < minimum for count in counts):
        return [(low, high, len(values))]
    return [
        *(_halved(values[below], low, middle, minimum, left - 1) if counts[0] else [(low, middle, 0)]),
        *(_halved(values[~below], middle, high, minimum, left - 1) if counts[1] else [(middle, high, 0)]),
    ]
