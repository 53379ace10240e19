"""Read the cells of a folder with only the CSV files of a report: table.csv, and clients.csv if it is there.

A large clients.csv may be stored compressed, as clients.csv.gz.
"""

import csv
import gzip
import io
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import DataError
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import METRICS
from idiolect.report.board import Board, columns_of
from idiolect.report.raw import OVER_SEEDS
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.analyse.outcomes import Line
from idiolect.study.analyse.pairs import Scores
from idiolect.study.spec.published import Published
from idiolect.study.store.summary import OverSeeds

TABLE, CLIENTS = "table.csv", "clients.csv"
PACKED = f"{CLIENTS}.gz"
Key = tuple[str, str]
"""(method's title, model): one line of a table."""


@dataclass(frozen=True)
class CsvCell:
    """One cell of the files.

    metrics: the compared one first, then the others that table.csv has. lines: of table.csv, each model once.
    scores: every client's scores of clients.csv, by model and seed; empty without that file. Their value over all
    samples is the mean of the clients' values, weighted by samples, for metrics that are such means (`is_mean`). It
    is NaN for all others, such as AUROC: the files have those only as means over seeds, in `lines`.
    """

    id: str
    metrics: tuple[Metric, ...]
    lines: tuple[Line, ...]
    clients: tuple[str, ...]
    scores: Scores

    @property
    def metric(self) -> Metric:
        """The metric by which models are compared."""
        return self.metrics[0]


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of a file, and its line, which errors name."""

    path: Path
    line: int
    fields: dict[str, str]

    def __getitem__(self, name: str) -> str:
        return self.fields[name]

    def text(self, name: str) -> str:
        """A field's text; empty where the file has no such column."""
        return self.fields.get(name, "")

    def number(self, name: str) -> float:
        """A field's number; NaN where it is empty, or the file has no such column."""
        text = self.text(name)
        try:
            return float(text) if text else math.nan
        except ValueError as error:
            raise self.wrong(name, "no number") from error

    def whole(self, name: str) -> int:
        """A field's whole number; 0 where it is empty."""
        text = self.text(name)
        try:
            return int(text) if text else 0
        except ValueError as error:
            raise self.wrong(name, "no whole number") from error

    def wrong(self, name: str, what: str) -> DataError:
        """The error of a field that cannot be read."""
        where = f"{self.path}, line {self.line}, column '{name}'"
        return DataError(f"{where}: '{self.text(name)}' is {what}; write the file again, or leave the folder out")


def clients_file(folder: Path) -> Path | None:
    """Find a folder's clients.csv or, without one, its clients.csv.gz; None if the folder has neither."""
    return next((folder / name for name in (CLIENTS, PACKED) if (folder / name).is_file()), None)


def text_of(path: Path) -> str:
    """Read a CSV file's text, with its line ends as they are; a file that ends with .gz is decompressed.

    Raises `OSError`, `UnicodeDecodeError`, or `EOFError` and `zlib.error` for a damaged compressed file.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        return file.read()


def cells_in(folder: Path) -> tuple[CsvCell, ...]:
    """Read the cells of table.csv and clients.csv (or clients.csv.gz), which `report.raw` wrote.

    Seeds that were planned but did not end are not in these files. Raises `DataError` for a file that is not such a
    table.
    """
    table = _rows(folder / TABLE, ("cell", "method", "model", "metric", "seeds", "pooled"))
    clients: list[_Row] = []
    if (file := clients_file(folder)) is not None:
        clients = _rows(file, ("cell", "method", "model", "seed", "client", "n", "loss"))
    by_cell: dict[str, list[_Row]] = {row["cell"]: [] for row in table}
    for row in clients:
        by_cell.get(row["cell"], []).append(row)
    return tuple(_cell(cell, [row for row in table if row["cell"] == cell], own) for cell, own in by_cell.items())


def boards_in(folder: Path) -> list[Board]:
    """Read the cells as figures and tables of clients need them. Raises `DataError` as `cells_in` does."""
    return [_board(cell) for cell in cells_in(folder)]


def _rows(path: Path, needed: Sequence[str]) -> list[_Row]:
    """The rows of a CSV file. Raises `DataError` if it cannot be read or lacks a column."""
    try:
        lines = [*csv.reader(io.StringIO(text_of(path), newline=""), strict=True)]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    names = lines[0] if lines else []
    if lacking := [name for name in needed if name not in names]:
        raise DataError(f"{path} has no column '{lacking[0]}': it is not a report's {path.name}")
    rows: list[_Row] = []
    for number, fields in enumerate(lines[1:], 2):
        if fields and len(fields) != len(names):
            raise DataError(f"{path}, line {number}: it has another number of fields than the first line")
        if fields:
            rows.append(_Row(path, number, dict(zip(names, fields, strict=True))))
    return rows


def _cell(cell: str, rows: list[_Row], clients: list[_Row]) -> CsvCell:
    first: dict[Key, _Row] = {}
    for row in rows:  # further rows of a model are its further published values
        first.setdefault((row["method"], row["model"]), row)
    compared = rows[0]["metric"]
    if compared not in METRICS:
        raise rows[0].wrong("metric", "no metric of idiolect")
    lines = tuple(_line(row, METRICS[compared]) for row in first.values())
    measured = {name for line in lines for name, value in line.metrics.items() if math.isfinite(value.mean)}
    others = (name for name in METRICS if name in measured and name != compared)
    metrics = tuple(METRICS[name] for name in (compared, *others))
    names = tuple(dict.fromkeys(row["client"] for row in clients))
    return CsvCell(cell, metrics, lines, names, _scores(clients, names, metrics, [*first]))


def _line(row: _Row, metric: Metric) -> Line:
    values = {name: _over(row, name) for name in OVER_SEEDS}
    others = {
        name: _over(row, each.key) for name, each in METRICS.items() if each.key in row.fields and name != metric.name
    }
    hurt = {name: None if math.isnan(values[name].mean) else values[name] for name in ("hurt_local", "hurt_global")}
    try:
        rounds = tuple(int(round) for round in row.text("rounds").split())
    except ValueError as error:
        raise row.wrong("rounds", "no list of rounds") from error
    return Line(
        cell=row["cell"],
        method=row["method"],
        model=row["model"],
        metric=metric.name,
        pooled=values["pooled"],
        mean=values["mean"],
        spread=values["spread"],
        worst10=values["worst10"],
        worst=values["worst"],
        loss=values["loss"],
        metrics={metric.name: values["pooled"]} | others,
        hurt_local=hurt["hurt_local"],
        hurt_global=hurt["hurt_global"],
        rounds=rounds,
        seconds=values["seconds"],
        published=_published(row),
        failed=row.whole("failed"),
    )


def _published(row: _Row) -> Published | None:
    if not row.text("published"):
        return None
    std, half, within = (row.number(name) for name in ("published_std", "published_half_width", "within"))
    return Published(
        model=row["model"],
        value=row.number("published"),
        std=None if math.isnan(std) else std,
        half_width=None if math.isnan(half) else half,
        metric=row.text("published_metric"),
        other_data=row.text("other_data"),
        explained=row.text("explained"),
        within=1.0 if math.isnan(within) else within,
    )


def _over(row: _Row, name: str) -> OverSeeds:
    mean, std, half = (row.number(name + end) for end in ("", "_std", "_ci95"))
    return OverSeeds(mean, std, half, 0 if math.isnan(mean) else row.whole("seeds"))


def _scores(rows: list[_Row], names: tuple[str, ...], metrics: Sequence[Metric], keys: Sequence[Key]) -> Scores:
    """The clients' scores of the table's models, in the table's order."""
    place = {name: i for i, name in enumerate(names)}
    found: dict[Key, dict[int, ClientScores]] = {key: {} for key in keys}
    grouped: dict[tuple[str, str, int], dict[int, _Row]] = {}
    for row in rows:
        run = grouped.setdefault((row["method"], row["model"], row.whole("seed")), {})
        if place[row["client"]] in run:
            model = f"'{row['method']}' {row['model']}, seed {row['seed']},"
            raise DataError(f"{row.path}, line {row.line}: {model} has a client twice")
        run[place[row["client"]]] = row
    if rows and metrics[0].key not in rows[0].fields:
        raise DataError(f"{rows[0].path} has no column '{metrics[0].key}', the metric that {TABLE} compares")
    for (method, model, seed), run in grouped.items():
        if (method, model) not in found:
            continue
        count = np.zeros(len(names), np.int64)
        loss = np.full(len(names), np.nan)
        values = {metric.name: np.full(len(names), np.nan) for metric in metrics}
        for client, row in run.items():
            count[client], loss[client] = row.whole("n"), row.number("loss")
            for metric in metrics:
                values[metric.name][client] = row.number(metric.key)
        pooled = {m.name: _mean(values[m.name], count) if m.is_mean else math.nan for m in metrics}
        found[method, model][seed] = ClientScores(model, "test", count, loss, values, pooled)
    return found


def _mean(values: np.ndarray, count: np.ndarray) -> float:
    has = (count > 0) & np.isfinite(values)
    return float(np.average(values[has], weights=count[has])) if has.any() else math.nan


def _board(cell: CsvCell) -> Board:
    scores = {key: by_seed for key, by_seed in cell.scores.items() if by_seed}
    models: dict[str, list[str]] = {}
    for line in cell.lines:
        models.setdefault(line.method, []).append(line.model)
    return Board(
        cell=cell.id,
        title=cell.id,
        metrics=cell.metrics,
        planned=max((line.pooled.seeds for line in cell.lines), default=0),
        clients=cell.clients,
        scores=scores,
        summaries={(line.method, line.model): columns_of(line) for line in cell.lines},
        names={method: ALGORITHMS[method].title if method in ALGORITHMS else method for method in models},
        local=next((method for method, own in models.items() if own == ["local"]), ""),
        sizes=next((next(iter(by_seed.values())).count for by_seed in scores.values()), None),
        size_of="test",
    )
