"""Read the parts of a report from its CSV files only: table.csv, and clients.csv if it is there.

A large clients.csv may be stored compressed, as clients.csv.gz.
"""

import csv
import io
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import DataError, StoreError
from idiolect.core.files import plain_or_packed, unpacked
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import METRICS
from idiolect.report.raw import OVER_SEEDS
from idiolect.report.sections.tables import pairs_extra
from idiolect.report.text import isolated
from idiolect.report.view.parts import Entry, Key, Part, View
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.analyse.outcomes import FEDAVG, OWN, Line
from idiolect.study.analyse.pairs import Scores, pairs_among
from idiolect.study.spec.published import Published
from idiolect.study.store.summary import OverSeeds

TABLE, CLIENTS, OWN_SAMPLES = "table.csv", "clients.csv", "own-samples.csv"
NEEDED = ("cell", "method", "model", "seed", "client", "n", "loss")


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


def parts_in(folder: Path) -> tuple[Part, ...]:
    """Read the cells of table.csv and clients.csv (or clients.csv.gz).

    Seeds that were planned but did not end are not in these files. Scores over all samples are the means of the
    clients' values, weighted by samples, for metrics that are such means (`is_mean`). They are NaN for all others,
    such as AUROC: the files have those only as means over seeds, in `lines`. Raises `DataError` for a file that is
    not such a table.
    """
    table = _rows(folder / TABLE, ("cell", "method", "model", "metric", "seeds", "pooled"))
    clients: list[_Row] = []
    if (file := plain_or_packed(folder / CLIENTS)) is not None:
        clients = _rows(file, NEEDED)
    by_cell: dict[str, list[_Row]] = {row["cell"]: [] for row in table}
    for row in clients:
        by_cell.get(row["cell"], []).append(row)
    return tuple(_part(cell, [row for row in table if row["cell"] == cell], own) for cell, own in by_cell.items())


def scores_in(folder: Path, parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts of a report.json with the scores of clients.csv; without that file, as they are."""
    file = plain_or_packed(folder / CLIENTS)
    rows = [] if file is None or not _of_cells(file) else _rows(file, NEEDED)
    found: list[Part] = []
    for part in parts:
        own, keys = (
            [row for row in rows if row["cell"] == part.id],
            [(line.method, line.model) for line in part.lines],
        )
        found.append(replace(part, scores=_scores(own, part.clients, part.measured_metrics, keys)) if own else part)
    return tuple(found)


def _of_cells(file: Path) -> bool:
    """Whether a clients.csv is of a comparison; that of new clients has no cells."""
    return "cell" in unpacked(file).partition("\n")[0].split(",")


def _rows(path: Path, needed: Sequence[str]) -> list[_Row]:
    """The rows of a CSV file. Raises `DataError` if it cannot be read or lacks a column."""
    try:
        lines = [*csv.reader(io.StringIO(unpacked(path), newline=""), strict=True)]
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


def _part(cell: str, rows: list[_Row], clients: list[_Row]) -> Part:
    first: dict[Key, _Row] = {}
    for row in rows:  # further rows of a model are its further published values
        first.setdefault((row["method"], row["model"]), row)
    compared = rows[0]["metric"]
    if compared not in METRICS:
        raise rows[0].wrong("metric", "no metric of idiolect")
    metric = METRICS[compared]
    lines = tuple(_line(row, metric) for row in first.values())
    measured = {name for line in lines for name, value in line.metrics.items() if math.isfinite(value.mean)}
    others = (name for name in METRICS if name in measured and name != compared)
    metrics = tuple(METRICS[name] for name in (compared, *others))
    names = tuple(dict.fromkeys(row["client"] for row in clients))
    models: dict[str, list[str]] = {}
    for line in lines:
        models.setdefault(line.method, []).append(line.model)
    methods = tuple(_entry(title, own) for title, own in models.items())
    plain = FEDAVG if {"fedavg", "fedavg-ft"} & {method.name for method in methods} else OWN
    scores = _scores(clients, names, metrics, [*first])
    seeds = sorted({seed for by_seed in scores.values() for seed in by_seed})
    most = max((line.pooled.seeds for line in lines), default=0)
    untested = (
        f"{isolated(cell)}: {metric.column} over all samples is read from {TABLE}, a mean over seeds. It is no mean "
        f"of the clients' values, so {CLIENTS} does not give it for each seed, and no difference between methods is "
        "tested."
    )
    part = Part(
        id=cell,
        title=cell,
        metric=metric,
        metrics=metrics,
        task=metric.task,
        seeds=tuple(seeds) or tuple(range(most)),
        methods=methods,
        lines=tuple(replace(line, global_of=(plain,)) if line.hurt_global else line for line in lines),
        clients=names,
        scores=scores,
        by_seed=metric.is_mean,
        missing=() if metric.is_mean or most < 2 else (untested,),
    )
    reference = part.local or next((key for key, by_seed in scores.items() if by_seed), None)
    if reference is None or not scores.get(reference):
        return part
    found = pairs_among(scores, reference, metric, names)
    extra = pairs_extra(found, reference, metric, len(seeds), tested=part.by_seed)
    pairs = {(pair.method, pair.model): pair for pair in found}
    return replace(part, pairs=pairs, extras=(extra,) if len(seeds) > 1 else ())


def _entry(title: str, models: list[str]) -> Entry:
    """A method by its title and, where it is known, its name; "" if only the title is known."""
    name = "local" if models == ["local"] else title
    known = ALGORITHMS.get(name)
    return Entry(title, title if known is None or title != name else known.title, "" if known is None else name)


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


def view_of_csv(folder: Path) -> View:
    """Read what a report says from a folder's table.csv and clients.csv; its title is the folder's name.

    Raises `StoreError` if there is no table.csv, `DataError` if a file cannot be read.
    """
    if not (folder / TABLE).is_file():
        raise StoreError(f"'{folder}' holds neither runs nor a {TABLE}; name a folder that idiolect has written")
    parts = parts_in(folder)
    missing = [
        f"{folder.name} was read from CSV files only: there are no curves, no labels and sizes of training data, no "
        "bytes, no graph, no distances of models and no confusion matrices to show."
    ]
    if plain_or_packed(folder / CLIENTS) is None:
        missing.append(f"{folder.name} has no {CLIENTS}: no client is shown by itself.")
    if not parts:
        missing.append(f"{folder.name}: {TABLE} has no row.")
    return View(
        title=folder.name,
        parts=parts,
        name=folder.name,
        missing=tuple(missing),
        published=any(line.published is not None for part in parts for line in part.lines),
    )
