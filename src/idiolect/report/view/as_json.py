"""What a report says as one JSON object, report.json: written next to every report, printed by `--json`, read back.

docs/report-json.md describes its fields. NaN and infinity become null.
"""

import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from idiolect.core.errors import StoreError
from idiolect.core.files import atomic_write, json_of, unpacked
from idiolect.metrics.registry import METRICS
from idiolect.report.layout import dashes_of, layout_of
from idiolect.report.text import SPREAD
from idiolect.report.view.columns import bytes_texts, table_of
from idiolect.report.view.conclusion import Conclusion, conclusions_of, default_of
from idiolect.report.view.convergence import still_improving
from idiolect.report.view.leaders import leaks_of
from idiolect.report.view.parts import Census, Course, Entry, Extra, Key, Part, Quantity, Run, Times, Traffic, View
from idiolect.study.analyse.outcomes import RULE, Line
from idiolect.study.analyse.pairs import Pair
from idiolect.study.analyse.ranks import Ranks
from idiolect.study.spec.published import Published
from idiolect.study.store.summary import half_widths


def clients_json(part: Part, keys: Mapping[Key, str]) -> dict[str, Any] | None:
    """The part's clients; None if no run has ended. keys: of each line in report.json."""
    measured = {key: part.scores[key] for key in keys if part.scores.get(key)}
    if not part.clients or not measured:
        return None
    scores: dict[str, Any] = {}
    half: dict[str, Any] = {}
    for key, by_seed in measured.items():
        values = np.stack([each.values[part.metric.name] for each in by_seed.values()])
        scores[keys[key]], half[keys[key]] = _mean(values).tolist(), half_widths(values).tolist()
    unknown = (None,) * len(part.clients)
    census = part.census or Census(part.clients, unknown, unknown)
    pairs = part.pairs if part.local is not None else {}
    return {
        "names": list(part.clients),
        "train": list(census.train),
        "test": list(census.test) if any(n is not None for n in census.test) else _counts(measured),
        "skew": skew(census),
        "labels": {"names": list(census.classes), "counts": [list(row) for row in census.counts]}
        if census.counts
        else None,
        "label_values": [list(row) for row in census.quantiles] if census.quantiles else None,
        "scores": scores,
        "half": half,
        "local": keys.get(part.local) if part.local else None,
        "shared": keys.get(part.shared) if part.shared else None,
        "beyond": {keys[key]: list(pair.clients.told) for key, pair in pairs.items() if key in keys},
        "distances": _by_line(part.distances, keys),
        "confusion": _by_line(part.confusion, keys),
        "confusion_note": part.confusion_note,
        "residuals": _by_line(part.residuals, keys),
    }


def _by_line(found: Mapping[Key, Any] | None, keys: Mapping[Key, str]) -> dict[str, Any] | None:
    return None if found is None else {keys[key]: each for key, each in found.items() if key in keys}


def _mean(values: np.ndarray) -> np.ndarray:
    """Each client's mean over seeds; NaN where any seed has no value."""
    return values.mean(axis=0)


def _counts(measured: Mapping[Key, Mapping[int, Any]]) -> list[int]:
    """The test samples of each client in the first run."""
    return next(iter(next(iter(measured.values())).values())).count.tolist()


def skew(census: Census) -> list[float | None]:
    """The total variation distance of each client's mix of labels to that of all clients together, 0 to 1."""
    if not census.counts:
        return [None] * len(census.names)
    counts = np.asarray(census.counts, np.float64)
    every = counts.sum(axis=0) / max(counts.sum(), 1)
    with np.errstate(invalid="ignore"):
        shares = counts / counts.sum(axis=1, keepdims=True)
    found = 0.5 * np.abs(shares - every).sum(axis=1)
    return [float(value) if np.isfinite(value) else None for value in found]


REPORT, VERSION, READABLE = "report.json", 2, (1, 2)
NOISE = (
    "A client counts as better or worse beyond noise if the difference from local training is more than its test "
    "samples and the seeds explain: each client is tested, with Holm's correction over all clients and models of the "
    "table, at 5 %."
)
AGAINST = (
    "'Compared with ...' (two seeds or more): the difference over all test samples, mean over the same seeds, with "
    "Student's 95 % interval; p is corrected by Holm's method for the table. The scores' deviation over seeds counts "
    "as at least one test sample, because a few seeds can have equal differences by chance. Seeds that share their "
    "test samples show the noise of training, not that of another choice of samples."
)
PLUS_MINUS = (
    f"What follows ± is {SPREAD}; a single seed has no ±. In a published value it is what the paper gives. Bands and "
    "bars show the same interval."
)


def to_dict(view: View) -> dict[str, Any]:
    """All that a report says, as plain JSON values."""
    whole, each = conclusions_of(view)
    reading = [PLUS_MINUS, *view.reading, NOISE, AGAINST, *bytes_texts(view.parts)]
    if view.published:
        reading.append(f"Verdicts on published values. {RULE.replace('**', '')}")
    after = f"Chosen after test results had been seen: {view.after_test}"
    names = dict.fromkeys(metric.name for part in view.parts for metric in part.measured_metrics)
    own = ("source", "description", "protocol", "command", "across", "after_test", "made_with")
    return plain(
        {
            "version": VERSION,
            "experiment": view.name,
            "title": view.title,
            **{name: getattr(view, name) for name in own},
            "seeds": view.seeds,
            **of_conclusion(whole),
            "missing": [*dict.fromkeys([*view.missing, *(line for part in view.parts for line in part.missing)])],
            "leaks": leaks_of(view.parts),
            "chosen": [*dict.fromkeys(part.chosen for part in view.parts if part.chosen)]
            + ([after] if view.after_test else []),
            "reading": view.reading,
            "how_to_read": reading,
            "verdicts": view.verdicts,
            "verdict": view.verdict,
            "published": view.published,
            "metrics": {name: {part: getattr(METRICS[name], part) for part in OF_METRIC} for name in names},
            "ranks": view.ranks and asdict(view.ranks),
            "cells": [_cell(part, one) for part, one in zip(view.parts, each, strict=True)],
            "runs": [_run(run) for run in view.runs],
        }
    )


OF_METRIC = ("column", "percent", "higher", "unit", "task")
OF_PART = ("id", "title", "task", "seeds", "rounds", "select", "selected", "chosen", "draw", "notes", "audit")
ALSO_OF_PART = ("settings", "statuses", "by_seed", "times", "at", "graphs", "figures")


def of_conclusion(one: Conclusion) -> dict[str, Any]:
    """The fields of a conclusion."""
    return {name: getattr(one, name) for name in ("decision", "headline", "numbers", "chips")}


def _cell(part: Part, conclusion: Conclusion) -> dict[str, Any]:
    methods = {entry.title: f"method{i}" for i, entry in enumerate(part.methods)}
    keys = {(line.method, line.model): f"m{i}" for i, line in enumerate(part.lines)}
    dashes = dashes_of([*keys])
    about = conclusion.about or ("", "")
    defaults = {about, *((m.title, default_of(part, m.title)) for m in part.methods if m.title != about[0])}
    return {
        **{name: getattr(part, name) for name in OF_PART},
        **of_conclusion(conclusion),
        "about": keys.get(conclusion.about) if conclusion.about else None,
        "metric": part.metric.name,
        "metrics": [metric.name for metric in part.measured_metrics],
        **{name: getattr(part, name) for name in ALSO_OF_PART},
        "own_missing": part.missing,
        "methods": [
            {
                "key": methods[entry.title],
                "title": entry.title,
                "shown": entry.shown,
                "name": entry.name,
                "color": i,
                "muted": entry.title in part.muted,
                "traffic": part.traffic.get(entry.title),
            }
            for i, entry in enumerate(part.methods)
        ],
        "models": [
            {
                "key": keys[line.method, line.model],
                "method": methods[line.method],
                "model": line.model,
                "title": _title(part, line),
                "dash": dashes[line.model],
                "default": (line.method, line.model) in defaults,
            }
            for line in part.lines
        ],
        "lines": [_line(line) for line in part.lines],
        "further": [_line(line) for line in part.further],
        "pairs": list(part.pairs.values()),
        "table": _table(part, keys),
        "tables": part.extras,
        "curves": _curves(part, keys),
        "clients": clients_json(part, keys),
        "sweep": part.sweep and _with_methods(part.sweep, methods),
    }


def _title(part: Part, line: Line) -> str:
    """A model's name: "Ditto, personal"; local training by its method's name only."""
    entry = part.entry(line.method)
    return entry.shown if entry.name == line.model in ("local", "global") else f"{entry.shown}, {line.model}"


def _with_methods(sweep: dict[str, Any], methods: Mapping[str, str]) -> dict[str, Any]:
    """The sweep with the methods' keys in place of their titles, or the reverse."""
    return {**sweep, "runs": [{**run, "method": methods.get(run["method"], "")} for run in sweep["runs"]]}


def _line(line: Line) -> dict[str, Any]:
    interval = line.interval
    ends = None if interval is None or interval.low is None else [interval.low, interval.high]
    return {**asdict(line), "difference": line.difference, "interval": ends, "verdict": line.verdict,
            "published": None if line.published is None else line.published.model_dump()}  # fmt: skip


def _run(run: Run) -> dict[str, Any]:
    """A run's fields; of one that was not started only what was planned."""
    planned = ("id", "cell", "method", "seed", "status")
    return {name: getattr(run, name) for name in planned} if run.status == "not run" else asdict(run)


def _table(part: Part, keys: Mapping[Key, str]) -> dict[str, Any]:
    table = table_of(part)
    of_column = ("title", "unit", "help", "numeric", "marked", "printed", "page", "once")
    return {
        "title": table.title,
        "columns": [{name: getattr(column, name) for name in of_column} for column in table.columns],
        "rows": [
            {
                "model": keys[row.key],
                "best": row.best,
                "first": row.first,
                "cells": [
                    {"text": cell.text, "sort": cell.sort, "bold": row.best and column.marked}
                    for cell, column in zip(row.cells, table.columns, strict=True)
                ],
            }
            for row in table.rows
        ],
        "notes": table.notes,
    }


def _curves(part: Part, keys: Mapping[Key, str]) -> dict[str, Any] | None:
    if not part.quantities:
        return None
    count = len(part.seeds)
    return {
        "quantities": [_quantity(part, each, keys) for each in part.quantities],
        "band": f"± {SPREAD}, of the seeds that have ended (of {count})" if count > 1 else "",
    }


def _quantity(part: Part, quantity: Quantity, keys: Mapping[Key, str]) -> dict[str, Any]:
    least, most = (0.0, 1.0) if quantity.percent else (-np.inf, np.inf)  # the possible values, where bands end
    layout, higher = layout_of(part, quantity.kind), part.metric.higher
    return {
        "kind": quantity.kind,
        "title": quantity.title,
        "percent": quantity.percent,
        "domain": layout.domain,
        "outside": [
            {"side": beyond.word, "wholly": _named(beyond.wholly, keys), "partly": _named(beyond.partly, keys)}
            for beyond in layout.beyond
        ],
        "stacks": [_named(group, keys) for group in layout.stacks if len(group) > 1],
        "series": [
            {
                "model": keys[course.key],
                "rounds": [int(round) for round in course.rounds],
                "mean": course.mean.tolist(),
                "half": course.half.tolist(),
                "low": np.maximum(course.mean - course.half, least).tolist(),
                "high": np.minimum(course.mean + course.half, most).tolist(),
                "ended": course.ended,
                "improving": None if quantity.kind != "score" else still_improving(course.mean, higher=higher),
            }
            for course in quantity.courses
            if course.key in keys
        ],
    }


def _named(lines: Iterable[Any], keys: Mapping[Key, str]) -> list[str]:
    """The keys of drawn lines."""
    return [keys[line.method, line.model] for line in lines if (line.method, line.model) in keys]


def plain(value: Any) -> Any:
    """Convert a value to what JSON can express: dicts with text keys, lists, and None for NaN and infinity."""
    if hasattr(value, "__dataclass_fields__"):
        return {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(data: dict[str, Any], path: Path) -> None:
    """Write `to_dict`'s object as report.json, atomically. Raises `OSError` if it cannot be written."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    with atomic_write(path, shared=True) as file:
        file.write(text.encode("utf-8", "backslashreplace") + b"\n")


def read_view(path: Path) -> View:
    """Read a report.json (or report.json.gz); scores of single seeds are not in it.

    Raises `StoreError` for another file or version.
    """
    try:
        data = json_of(unpacked(path))
        if data["version"] not in READABLE:
            raise StoreError(f"{path} has version {data['version']}; this idiolect reads versions up to {VERSION}")
        return _view(data)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"cannot read {path}: {type(error).__name__}: {error}") from error


def _view(data: Mapping[str, Any]) -> View:
    own = ("title", "source", "description", "protocol", "command", "across", "after_test", "verdicts", "verdict")
    same: dict[str, Any] = {name: data[name] for name in (*own, "published")}
    parts = tuple(_part(cell) for cell in data["cells"])
    of_parts = {line for part in parts for line in part.missing}
    return View(
        **same,
        name=data["experiment"],
        parts=parts,
        made_with=tuple(map(tuple, data["made_with"])),
        runs=made(tuple[Run, ...], data["runs"]),
        ranks=made(Ranks | None, data["ranks"]),
        missing=tuple(line for line in data["missing"] if line not in of_parts),
        reading=tuple(data["reading"]),
    )


def _part(cell: Mapping[str, Any]) -> Part:
    methods = {one["key"]: one["title"] for one in cell["methods"]}
    keys: dict[str, Key] = {one["key"]: (methods[one["method"]], one["model"]) for one in cell["models"]}
    clients = cell["clients"]
    own = ("id", "title", "task", "rounds", "select", "selected", "chosen", "statuses", "by_seed")
    values: dict[str, Any] = {name: cell[name] for name in own}
    values |= {name: tuple(cell[name]) for name in ("seeds", "draw", "notes", "graphs")}
    if clients is not None:
        labels = clients["labels"] or {"names": (), "counts": ()}
        census = {**clients, "classes": labels["names"], "counts": labels["counts"]}
        values |= {"clients": tuple(clients["names"]), "confusion_note": clients["confusion_note"]}
        values["census"] = made(Census, {**census, "quantiles": clients["label_values"] or ()})
        for name in ("distances", "confusion", "residuals"):
            values[name] = clients[name] and {keys[key]: each for key, each in clients[name].items()}
    if cell["curves"] is not None:
        values["quantities"] = tuple(_quantity_from(each, keys) for each in cell["curves"]["quantities"])
    return Part(
        **values,
        metric=METRICS[cell["metric"]],
        metrics=tuple(METRICS[name] for name in cell["metrics"]),
        methods=made(tuple[Entry, ...], cell["methods"]),
        lines=made(tuple[Line, ...], cell["lines"]),
        further=made(tuple[Line, ...], cell["further"]),
        audit=made(tuple[str, ...] | None, cell["audit"]),
        settings=made(tuple[tuple[str, str], ...], cell["settings"]),
        extras=made(tuple[Extra, ...], cell["tables"]),
        figures=made(tuple[tuple[str, str], ...], cell["figures"]),
        pairs={(one["method"], one["model"]): made(Pair, one) for one in cell["pairs"]},
        traffic={one["title"]: made(Traffic, one["traffic"]) for one in cell["methods"] if one["traffic"]},
        muted=frozenset(one["title"] for one in cell["methods"] if one["muted"]),
        times=made(Times | None, cell["times"]),
        at=made(float, cell["at"]),
        missing=tuple(cell["own_missing"]),
        sweep=cell["sweep"] and _with_methods(cell["sweep"], methods),
    )


def _quantity_from(quantity: Mapping[str, Any], keys: Mapping[str, Key]) -> Quantity:
    def course(one: Mapping[str, Any]) -> Course:
        rounds, mean, half = (np.array(made(list[float], one[name])) for name in ("rounds", "mean", "half"))
        return Course(keys[one["model"]], rounds, mean, half, one["ended"])

    courses = tuple(course(one) for one in quantity["series"])
    return Quantity(quantity["kind"], quantity["title"], quantity["percent"], courses)


def made(kind: Any, value: Any) -> Any:
    """Make a value of a type, dataclasses included, from plain JSON values; null as a number is NaN."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is float:
        return math.nan if value is None else float(value)
    if origin in (Union, UnionType):
        return None if value is None else made(args[0], value)
    if origin is tuple and Ellipsis not in args:
        return tuple(made(one, each) for one, each in zip(args, value, strict=True))
    if origin in (tuple, list, Sequence):
        found = [made(args[0], each) for each in value]
        return tuple(found) if origin is tuple else found
    if origin in (dict, Mapping):
        return {key: made(args[1], each) for key, each in value.items()}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        known = {part.name: made(hints[part.name], value[part.name]) for part in fields(kind) if part.name in value}
        return kind(**known)  # pyright: ignore[reportCallIssue]
    return kind.model_validate(value) if kind is Published else value
