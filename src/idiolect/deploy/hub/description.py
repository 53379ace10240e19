"""The description of all sites' columns together, from what each site has sent; see `schema.describe`.

Counts, means and deviations are exact, except where a site has withheld a part, which the description says. A
quantile has bounds between which it surely lies, from the cells of the sites' histograms.
"""

import csv
import html
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from idiolect.core.errors import DataError
from idiolect.core.files import write_text
from idiolect.deploy.headers import Columns, Histograms
from idiolect.deploy.messages import Message
from idiolect.deploy.query import DescribeStudy
from idiolect.deploy.schema.agree import choose
from idiolect.deploy.schema.describe import BLOCKS
from idiolect.deploy.schema.summary import ColumnSummary, Moments, TableSummary, pooled
from idiolect.deploy.study import shown

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
RESULT = "description"
DATES = ("date", "date d.m.y", "date d/m/y", "date m/d/y")
Masses = list[tuple[float, float, int]]
"""(low, high, rows) each: so many rows lie from low to high."""


@dataclass(frozen=True)
class Quantile:
    """The estimate of a quantile, and bounds between which it lies; None for a bound that is not known."""

    share: float
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ColumnDescription:
    """One column of the training rows of all sites, or of one.

    read_as: "category", or how its values are numbers; dates are days since 1970-01-01. rows: that have a value;
    missing: that have none. few_missing: sites where too few rows have none: they are counted as present. used: rows
    of the mean and the deviation (with n - 1). categories: value -> rows; at_least: those that some site has not
    named, so that there may be more; others: rows of values that are not named. withheld: site -> why it is left out.
    """

    name: str
    read_as: str
    rows: int
    missing: int
    few_missing: tuple[str, ...] = ()
    used: int = 0
    mean: float | None = None
    deviation: float | None = None
    quantiles: tuple[Quantile, ...] = ()
    categories: Mapping[str, int] = field(default_factory=dict[str, int])
    at_least: bool = False
    others: int = 0
    withheld: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Description:
    """All columns over all sites; per_site: of the sites that allow it. rows: site -> its training rows."""

    query: DescribeStudy
    rows: Mapping[str, int]
    columns: tuple[ColumnDescription, ...]
    per_site: Mapping[str, tuple[ColumnDescription, ...]]
    missing: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The description as JSON values."""
        return {
            "query": self.query.id,
            "digest": self.query.digest,
            "rows": sum(self.rows.values()),
            "sites": list(self.rows),
            "columns": [asdict(column) for column in self.columns],
            "per_site": {site: [asdict(column) for column in of] for site, of in self.per_site.items()},
            "missing": dict(self.missing),
            "notes": list(self.notes),
        }

    def lines(self) -> list[list[str]]:
        """The table as texts, the heading first; a line per column, first over all sites."""
        quantiles = [f"{share:.0%}" for share in QUANTILES]
        body = [_line("all", column) for column in self.columns]
        body += [_line(site, column) for site, columns in self.per_site.items() for column in columns]
        return [["site", "column", "read as", "rows", "missing", "mean", "deviation", *quantiles, "values"], *body]

    def remarks(self) -> list[str]:
        """What a reader must know of the numbers."""
        lines = [f"{site}: no description: {why}" for site, why in self.missing.items()]
        for column in self.columns:
            lines += [f"column '{column.name}': {site} is left out: {why}" for site, why in column.withheld.items()]
        lines += self.notes
        lines.append(
            "~ means that at some site too few rows have no value to say how many: they are counted as its mean or "
            "as its most frequent value. The deviation divides by n - 1. A quantile lies between its two bounds."
        )
        return [" ".join(line.split()) for line in lines]

    def save(self, folder: Path) -> None:
        """Write description.json, .csv, .md, and a part of a page, .html. Raises `StoreError` if it cannot."""
        head, *body = self.lines()
        plain = io.StringIO()
        csv.writer(plain, lineterminator="\n").writerows([head, *body])
        marks = [
            "| " + " | ".join(_marked(cell) for cell in line) + " |" for line in (head, ["---"] * len(head), *body)
        ]
        remarks = self.remarks()
        contents = {
            "json": json.dumps(self.to_dict(), indent=1) + "\n",
            "csv": plain.getvalue(),
            "md": "\n".join([f"# {self.query.id}", "", *marks, "", *(f"{one}  " for one in remarks), ""]),
            "html": _section(self.query.id, head, body, remarks),
        }
        for suffix, content in contents.items():
            write_text(folder / f"{RESULT}.{suffix}", content)


def _section(title: str, head: Sequence[str], body: Sequence[Sequence[str]], remarks: Sequence[str]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    lines = [f"<section><h2>{html.escape(title)}</h2>", "<table>", f"<thead>{row(head, 'th')}</thead>", "<tbody>"]
    lines += [row(cells, "td") for cells in body]
    return "\n".join(
        [*lines, "</tbody></table>", *(f"<p>{html.escape(one)}</p>" for one in remarks), "</section>", ""]
    )


def _marked(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|")


def _line(site: str, column: ColumnDescription) -> list[str]:
    about = "~" if column.few_missing else ""
    named = [
        f"{shown(word, 40)} {about}{rows:,}{'+' if column.at_least else ''}"
        for word, rows in column.categories.items()
    ]
    named += [f"others {column.others:,}"] if column.others else []
    missing = f"{column.missing:,}" + (f" + few at {len(column.few_missing)}" if column.few_missing else "")
    quantiles = [_quantile(one, column.read_as) for one in column.quantiles] or [""] * len(QUANTILES)
    return [
        site,
        shown(column.name),
        column.read_as,
        f"{about}{column.rows:,}",
        missing,
        about + _number(column.mean, column.read_as) if column.mean is not None else "",
        about + _number(column.deviation) if column.deviation is not None else "",
        *quantiles,
        ", ".join(named),
    ]


def _quantile(one: Quantile, read_as: str) -> str:
    if one.low is not None and one.low == one.high:
        return _number(one.low, read_as)
    low, high = (_number(end, read_as) or "?" for end in (one.low, one.high))
    return f"{_number(one.value, read_as) or '?'} [{low}, {high}]"


def _number(value: float | None, read_as: str = "") -> str:
    if value is None:
        return ""
    if read_as in DATES:
        try:
            return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=value)).strftime("%Y-%m-%d")
        except OverflowError:
            return f"{value:.6g} days"
    return f"{value:.6g}"


Of = dict[str, ColumnSummary]
"""One column, by site."""


def grids_of(answers: Mapping[str, Message]) -> dict[str, dict[str, Any]]:
    """The grids of the histograms: column -> reading, start and width of the blocks.

    The blocks are half a standard deviation wide, rounded to a power of 2, and lie around the mean of all sites, at a
    multiple of their width. So grids of nearly equal tables are the same.
    """
    summaries = _summaries(answers)[0]
    grids = dict[str, dict[str, Any]]()
    for name, held in _by_column(summaries).items():
        reading = _reading(name, held, summaries)[0]
        parts = [found for column in held.values() if (found := _numbers(column, reading)) is not None]
        if reading is None or not parts:
            continue
        moments = pooled(parts)
        deviation = math.sqrt(moments.m2 / moments.count)
        if moments.constant or deviation <= 0 or all(column.values for column in held.values()):
            continue
        width = 2.0 ** round(math.log2(deviation / 2))
        start = math.floor((moments.mean - BLOCKS / 2 * width) / width) * width
        if math.isfinite(start + BLOCKS * width) and start + width > start:
            grids[name] = {"reading": reading, "start": start, "width": width}
    return grids


def described(
    query: DescribeStudy,
    columns: Mapping[str, Message],
    histograms: Mapping[str, Message],
    missing: Mapping[str, str],
) -> Description:
    """The description of all sites' columns.

    Args:
        query: the query.
        columns: site -> its answer to "describe".
        histograms: site -> its answer to "histograms".
        missing: site -> why it has sent none. An answer that cannot be read counts as none.
    """
    summaries, unread = _summaries(columns)
    cells, missing = dict[str, Histograms](), {**missing, **unread}
    for site, answer in histograms.items():
        try:
            cells[site] = Histograms.of(answer, "its histograms")
        except DataError as error:
            missing[site] = str(error)
    open_sites = [site for site in summaries if _may_show(columns[site])]
    made, notes, alone = (
        list[ColumnDescription](),
        list[str](),
        {site: list[ColumnDescription]() for site in open_sites},
    )
    for name, held in _by_column(summaries).items():
        reading, note = _reading(name, held, summaries)
        if note:
            notes.append(note)
            continue
        grids = {site: _masses(of.cells.get(name, ())) for site, of in cells.items()}
        made.append(_column(name, reading, held, grids))
        for site in _shown_alone(open_sites, reading, held):
            alone[site].append(_column(name, reading, {site: held[site]}, grids))
    alone = {site: of for site, of in alone.items() if of}
    if len(alone) < len(summaries):
        notes.append(
            f"{len(alone)} of {len(summaries)} sites are shown by themselves. The totals would give the numbers of a "
            "site that is the only one not shown, so no site is shown then."
        )
    rows = {site: one.rows for site, one in summaries.items()}
    return Description(query, rows, tuple(made), {s: tuple(of) for s, of in alone.items()}, missing, tuple(notes))


def _may_show(answer: Message) -> bool:
    return Columns.of(answer, "its columns").may_show


def _shown_alone(allowed: Sequence[str], reading: str | None, held: Of) -> list[str]:
    """The sites whose own column is shown; none if a total would give the numbers of a single other site."""
    told = {site: column for site, column in held.items() if not column.withheld}
    parts = (
        {*told},
        {site for site, column in told.items() if _numbers(column, reading) is not None},
        {site for site, column in told.items() if _counts(column, reading) is not None},
        {site for site, column in told.items() if column.missing},
    )
    if any(len(part.difference(allowed)) == 1 for part in parts):
        return []
    return [site for site in allowed if site in held]


def _summaries(answers: Mapping[str, Message]) -> tuple[dict[str, TableSummary], dict[str, str]]:
    """(the summaries that can be read, why others cannot)."""
    good, bad = dict[str, TableSummary](), dict[str, str]()
    for site, answer in answers.items():
        try:
            sent = Columns.of(answer, "its columns")
            summary = TableSummary.from_dict(sent.summary, "its columns")
            if summary.site != site:
                raise DataError(f"its columns are of '{summary.site}'")
            good[site] = summary
        except DataError as error:
            bad[site] = str(error)
    return good, bad


def _by_column(summaries: Mapping[str, TableSummary]) -> dict[str, Of]:
    """Column -> site -> what it says of it, in the order of the first site that has it."""
    found = dict[str, Of]()
    for site, summary in summaries.items():
        for column in summary.columns:
            found.setdefault(column.name, {})[site] = column
    return found


def _reading(name: str, held: Of, summaries: Mapping[str, TableSummary]) -> tuple[str | None, str]:
    """(how all sites read a column, None for categories; why they cannot be put together)."""
    try:
        return choose(name, held, {site: summaries[site].comma_likely for site in held}), ""
    except DataError as error:
        return None, f"{error}; it is not described"


def _column(name: str, reading: str | None, held: Of, cells: Mapping[str, Masses]) -> ColumnDescription:
    told = {site: column for site, column in held.items() if not column.withheld}
    few = tuple(site for site, column in told.items() if column.few_missing)
    counts = [_counts(column, reading) for column in told.values()]
    categories, others = dict[str, int](), 0
    for one in counts:
        for word, rows in (one[0] if one else {}).items():
            categories[word] = categories.get(word, 0) + rows
        others += one[1] if one else 0
    parts = [found for column in told.values() if (found := _numbers(column, reading)) is not None]
    moments = pooled(parts) if parts else None
    without = {site: column.withheld for site, column in held.items() if column.withheld}
    if reading is not None:
        without |= {
            site: "its mean, because a value has too few rows"
            for site, column in told.items()
            if _numbers(column, reading) is None and column.count
        }
    return ColumnDescription(
        name=name,
        read_as=reading or "category",
        rows=sum(column.count for column in told.values()),
        missing=sum(column.missing for column in told.values()),
        few_missing=few,
        used=0 if moments is None else moments.count,
        mean=None if moments is None else moments.mean,
        deviation=_deviation(moments),
        quantiles=() if reading is None else _quantiles(reading, told, cells),
        categories=dict(sorted(categories.items(), key=lambda item: (-item[1], item[0]))),
        at_least=others > 0,
        others=others,
        withheld=without,
    )


T = TypeVar("T")


def _read(column: ColumnSummary, by_reading: Mapping[str, T], reading: str | None) -> T | None:
    """What a site says of a column as all read it. One that is stored as numbers or dates is read in one way only."""
    if column.stored == "text" and reading is not None:
        return by_reading.get(reading)
    return next(iter(by_reading.values()), None)


def _numbers(column: ColumnSummary, reading: str | None) -> Moments | None:
    """A site's mean and sum of squares of a column of numbers."""
    found = None if reading is None else _read(column, column.readings, reading)
    return None if found is None else found.moments


def _deviation(moments: Moments | None) -> float | None:
    return None if moments is None or moments.count < 2 else math.sqrt(moments.m2 / (moments.count - 1))


def _counts(column: ColumnSummary, reading: str | None) -> tuple[dict[str, int], int] | None:
    """(value -> rows, rows of other values) of a site that counts by value."""
    words = column.words if column.words is not None else _read(column, column.values, reading)
    return None if words is None else (_short(words.named), words.withheld_rows)


def _short(named: Mapping[str, int]) -> dict[str, int]:
    return {word.removesuffix(".0"): rows for word, rows in named.items()}


def _masses(cells: Sequence[tuple[float | None, float | None, int]]) -> Masses:
    return [
        (-math.inf if low is None else low, math.inf if high is None else high, rows) for low, high, rows in cells
    ]


def _quantiles(reading: str, told: Of, cells: Mapping[str, Masses]) -> tuple[Quantile, ...]:
    """The quantiles of all sites that say something of where their rows lie."""
    masses = Masses()
    for site, column in told.items():
        counted, moments = _read(column, column.values, reading), _numbers(column, reading)
        if counted is not None:
            masses += [(float(word), float(word), rows) for word, rows in counted.named.items()]
            masses += [(-math.inf, math.inf, counted.withheld_rows)] if counted.withheld_rows else []
        elif moments is not None:
            masses += cells.get(site) or [(-math.inf, math.inf, moments.count)]
    masses = [mass for mass in masses if mass[2] > 0]
    return tuple(quantile(share, masses) for share in QUANTILES) if masses else ()


def quantile(share: float, masses: Masses) -> Quantile:
    """The quantile (linear, as pandas' default) of rows of which only intervals are known.

    With h = share (n - 1), it lies between the order statistics floor(h) and ceil(h), from 0. Order statistic i is
    at least the (i + 1)-th lowest low end, and at most the (i + 1)-th lowest high end. The estimate takes the rows of
    an interval as evenly spread, and where one end is open, its other end.

    Args:
        share: in [0, 1].
        masses: at least one row.
    """
    count = sum(rows for _, _, rows in masses)
    place = share * (count - 1)
    low = _ordered([(low, rows) for low, _, rows in masses], math.floor(place))
    high = _ordered([(high, rows) for _, high, rows in masses], math.ceil(place))
    bounded = [
        (low if math.isfinite(low) else high, high if math.isfinite(high) else low, rows)
        for low, high, rows in masses
        if math.isfinite(low) or math.isfinite(high)
    ]
    value: float | None = None
    if bounded:
        lows, highs, rows = (np.array(part, np.float64) for part in zip(*bounded, strict=True))
        edges = np.unique(np.concatenate([lows, highs]))
        wide = highs > lows
        shares = np.clip((edges[:, None] - lows) / np.where(wide, highs - lows, 1), 0, 1)
        below = np.where(wide, shares, edges[:, None] >= lows) @ rows
        value = float(np.clip(np.interp(share * rows.sum(), below, edges), low, high))
    return Quantile(share, value, *(end if math.isfinite(end) else None for end in (low, high)))


def _ordered(ends: Sequence[tuple[float, int]], place: int) -> float:
    """The value of the row with this place, from 0, of rows in ascending order."""
    seen = 0
    for end, rows in sorted(ends):
        seen += rows
        if place < seen:
            return end
    return math.inf
