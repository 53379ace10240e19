"""What a page shows of committed CSV files alone: tables and clients, without curves, labels, bytes and audits."""

import csv
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import DataError, StoreError
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import METRICS
from idiolect.report.extras import pairs_extra
from idiolect.report.html.parts import Entry, Key, Part, Whole
from idiolect.report.html.words import Section, told_by
from idiolect.report.raw import OVER_SEEDS
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.outcomes import FEDAVG, OWN, Line
from idiolect.study.pairs import Scores, pairs_among
from idiolect.study.published import Published
from idiolect.study.summary import OverSeeds

TABLE, CLIENTS = "table.csv", "clients.csv"
Row = Mapping[str, str]


def whole_of_csv(folder: Path) -> Whole:
    """The whole that a folder's table.csv and clients.csv tell; its report.md gives the title and the command.

    Raises `StoreError` if neither file is there, `DataError` if one cannot be read.
    """
    table, clients = folder / TABLE, folder / CLIENTS
    if not table.is_file():
        raise StoreError(f"'{folder}' holds neither runs nor a {TABLE}; name a folder that idiolect has written")
    rows = _rows(table, ("cell", "method", "model", "metric", "seeds", "pooled"))
    people = _rows(clients, ("cell", "method", "model", "seed", "client", "n", "loss")) if clients.is_file() else []
    words = told_by(folder / "report.md", folder.name)
    cells = dict.fromkeys(row["cell"] for row in rows)
    try:
        parts = tuple(
            _part(cell, [r for r in rows if r["cell"] == cell], [r for r in people if r["cell"] == cell], section)
            for cell, section in zip(cells, words.of(len(cells)), strict=True)
        )
    except (ValueError, KeyError) as error:
        reason = f"{TABLE if isinstance(error, KeyError) else CLIENTS} holds what cannot be read: {error}"
        raise DataError(f"'{folder}': {reason}; write the files again, or leave the folder out") from error
    missing = [
        f"{folder.name} was read from CSV files alone: there are no curves, no labels and sizes of training data, no "
        "bytes, no graph, no distances of models and no confusion matrices to show."
    ]
    if not people:
        missing.append(f"{folder.name} has no {CLIENTS}: no client is shown by itself.")
    if not parts:
        missing.append(f"{folder.name}: {TABLE} has no row.")
    return Whole(
        title=words.title,
        parts=parts,
        source=words.source,
        protocol=words.protocol,
        command=words.command,
        made_with=words.made_with,
        missing=tuple(missing),
        published=any(line.published is not None for part in parts for line in part.lines),
    )


def _rows(path: Path, needed: Iterable[str]) -> list[Row]:
    """The rows of a CSV file. Raises `DataError` if it cannot be read or lacks a column."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read()
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        rows: list[Row] = [*reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    lacking = [name for name in needed if name not in (reader.fieldnames or ())]
    if lacking:
        raise DataError(f"{path} has no column '{lacking[0]}': it is not a file of a report")
    for number, row in enumerate(rows, 2):
        fields: list[Any] = [*row, *row.values()]  # None stands for what is too much or missing
        if None in fields:
            raise DataError(f"{path}, line {number}: it has another number of fields than the first line")
    return rows


def _part(cell: str, rows: list[Row], people: list[Row], words: Section) -> Part:
    first: list[Row] = []
    for row in rows:  # the second, third, ... published value of a model is not shown again
        if (row["method"], row["model"]) not in {(one["method"], one["model"]) for one in first}:
            first.append(row)
    metric = _metric(first[0]["metric"])
    lines = tuple(_line(row, metric) for row in first)
    names = tuple(dict.fromkeys(row["client"] for row in people))
    scores = _scores(people, names, metric, [(line.method, line.model) for line in lines])
    methods = tuple(_entry(title, words.method_of(title)) for title in dict.fromkeys(line.method for line in lines))
    plain = FEDAVG if {"fedavg", "fedavg-ft"} & {method.name for method in methods} else OWN
    lines = tuple(replace(line, global_of=(plain,)) if line.hurt_global else line for line in lines)
    seeds = sorted({seed for by_seed in scores.values() for seed in by_seed})
    most = max((line.pooled.seeds for line in lines), default=0)
    part = Part(
        id=cell,
        title=words.title or cell,
        metric=metric,
        task=metric.task,
        seeds=tuple(seeds) or tuple(range(most)),
        methods=methods,
        lines=lines,
        clients=names,
        scores=scores,
        notes=words.notes,
        audit=words.audit or None,
        settings=words.settings,
        chosen=words.chosen,
    )
    reference = part.local or next((key for key, by_seed in scores.items() if by_seed), None)
    if reference is None or not scores.get(reference):
        return part
    found = pairs_among(scores, reference, metric, names)
    extra = (pairs_extra(found, reference, metric, len(seeds)),) if len(seeds) > 1 else ()
    pairs = {(pair.method, pair.model): pair for pair in found}
    return replace(part, pairs=pairs, extras=extra)


def _metric(name: str) -> Metric:
    if name not in METRICS:
        raise KeyError(f"unknown metric '{name}'")
    return METRICS[name]


def _entry(title: str, name: str) -> Entry:
    """A method by its title and, where the page tells it, its name; "" if only the title is known."""
    name = name or title
    known = ALGORITHMS.get(name)
    return Entry(title, title if known is None or title != name else known.title, "" if known is None else name)


def _line(row: Row, metric: Metric) -> Line:
    seeds = int(row["seeds"])
    values = {name: _over(row, name, seeds) for name in OVER_SEEDS if name in row}
    measured = {name: _over(row, each.key, seeds) for name, each in METRICS.items() if each.key in row}
    measured = {metric.name: values["pooled"], **measured}
    none = OverSeeds(math.nan, math.nan, math.nan, 0)
    hurt = {name: values.get(name, none) for name in ("hurt_local", "hurt_global")}
    return Line(
        cell=row["cell"],
        method=row["method"],
        model=row["model"],
        metric=metric.name,
        pooled=values["pooled"],
        mean=values.get("mean", none),
        spread=values.get("spread", none),
        worst10=values.get("worst10", none),
        worst=values.get("worst", none),
        loss=values.get("loss", none),
        metrics=measured,
        hurt_local=None if math.isnan(hurt["hurt_local"].mean) else hurt["hurt_local"],
        hurt_global=None if math.isnan(hurt["hurt_global"].mean) else hurt["hurt_global"],
        rounds=tuple(int(round) for round in row.get("rounds", "").split()),
        seconds=values.get("seconds", none),
        published=_published(row),
        failed=int(row.get("failed") or 0),
    )


def _published(row: Row) -> Published | None:
    if not row.get("published"):
        return None
    return Published(
        model=row["model"],
        value=float(row["published"]),
        std=float(row["published_std"]) if row.get("published_std") else None,
        metric=row.get("published_metric", ""),
        other_data=row.get("other_data", ""),
        explained=row.get("explained", ""),
        within=float(row.get("within") or 1.0),
    )


def _over(row: Row, name: str, seeds: int) -> OverSeeds:
    mean, std, half = (_number(row.get(name + end, "")) for end in ("", "_std", "_ci95"))
    return OverSeeds(mean, std, half, 0 if math.isnan(mean) else seeds)


def _number(text: str) -> float:
    return float(text) if text else math.nan


def _scores(people: list[Row], names: tuple[str, ...], metric: Metric, keys: list[Key]) -> Scores:
    """Each model's scores of every client, by seed; over all samples the mean by test samples."""
    place = {name: i for i, name in enumerate(names)}
    found: dict[Key, dict[int, ClientScores]] = {key: {} for key in keys}
    grouped: dict[tuple[str, str, int], list[Row]] = {}
    for row in people:
        grouped.setdefault((row["method"], row["model"], int(row["seed"])), []).append(row)
    for (method, model, seed), rows in grouped.items():
        count = np.zeros(len(names), np.int64)
        loss, value = np.full(len(names), np.nan), np.full(len(names), np.nan)
        for row in rows:
            i = place[row["client"]]
            count[i], loss[i], value[i] = int(row["n"]), _number(row["loss"]), _number(row[metric.key])
        scored = (count > 0) & np.isfinite(value)
        pooled = float(np.average(value[scored], weights=count[scored])) if scored.any() else math.nan
        of = ClientScores(model, "test", count, loss, {metric.name: value}, {metric.name: pooled})
        if (method, model) in found:
            found[method, model][seed] = of
    return found
