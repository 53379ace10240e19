"""The page's data: one JSON object, made of what is known of each comparison."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from idiolect.report.extras import Extra
from idiolect.report.html.answers import answers_of
from idiolect.report.html.clients import clients_json
from idiolect.report.html.columns import Column, bytes_texts, columns_of
from idiolect.report.html.leaks import leaks_of
from idiolect.report.html.numbers import number, numbers
from idiolect.report.html.parts import Key, Part, Quantity, Whole
from idiolect.report.html.target import target_of
from idiolect.report.text import SPREAD, WIDTH
from idiolect.study.analyse.outcomes import RULE, Line

NOISE = (
    "A client counts as better or worse beyond noise if the difference to training alone is more than its test "
    "samples and the seeds explain: each client is tested, with Holm's correction over all clients and models of the "
    "table, at 5 %."
)
AGAINST = (
    "'Against ...' (two seeds or more): the difference over all test samples, mean over the same seeds, with "
    "Student's 95 % interval; p is corrected by Holm's method for the table. The scores' deviation over seeds counts "
    "as at least one test sample, because a few seeds can have equal differences by chance. Seeds that share their "
    "test samples show the noise of training, not that of another choice of samples."
)

PLUS_MINUS = (
    f"What follows ± is {SPREAD}; a single seed has no ±. In a published value it is what the paper gives. Bands and "
    "bars show the same interval."
)


def payload_of(whole: Whole) -> dict[str, Any]:
    """The page's data as plain JSON values."""
    answer, questions, each = answers_of(whole)
    reading = [PLUS_MINUS, *whole.reading, NOISE, AGAINST, *bytes_texts(whole.parts)]
    if whole.published:
        reading.append(f"Verdicts on published values. {RULE.replace('**', '')}")
    after = f"Chosen after test results had been seen: {whole.after_test}"
    return {
        "title": whole.title,
        "source": whole.source,
        "description": whole.description,
        "protocol": whole.protocol,
        "answer": answer,
        "questions": [list(pair) for pair in questions],
        "missing": list(dict.fromkeys([*whole.missing, *(line for part in whole.parts for line in part.missing)])),
        "command": whole.command,
        "made_with": [list(pair) for pair in whole.made_with],
        "seeds": sorted({seed for part in whole.parts for seed in part.seeds}),
        "leaks": leaks_of(whole.parts),
        "chosen": [*dict.fromkeys(part.chosen for part in whole.parts if part.chosen)]
        + ([after] if whole.after_test else []),
        "how_to_read": reading,
        "cells": [{**cell_json(part), "answer": told} for part, told in zip(whole.parts, each, strict=True)],
    }


def cell_json(part: Part) -> dict[str, Any]:
    """One cell of the page's data."""
    methods = {entry.title: f"method{i}" for i, entry in enumerate(part.methods)}
    keys = {(line.method, line.model): f"m{i}" for i, line in enumerate(part.lines)}
    against_local = part.pairs if part.local is not None else {}
    columns = columns_of(part, against_local, target_of(part))
    return {
        "id": part.id,
        "title": part.title,
        "notes": list(part.notes),
        "settings": [list(pair) for pair in part.settings],
        "metric": {
            "name": part.metric.name,
            "column": part.metric.column,
            "percent": part.metric.percent,
            "higher": part.metric.higher,
            "task": part.task,
        },
        "methods": [
            {"key": methods[entry.title], "title": entry.shown, "color": i, "muted": entry.title in part.muted}
            for i, entry in enumerate(part.methods)
        ],
        "models": [
            {
                "key": keys[line.method, line.model],
                "method": methods[line.method],
                "model": line.model,
                "title": _title(part, line),
            }
            for line in part.lines
        ],
        "table": _table(part, keys, columns),
        "tables": [_small(extra) for extra in part.extras],
        "curves": _curves(part, keys),
        "clients": clients_json(part, keys, against_local),
        "graph": part.graphs[0] if part.graphs else None,
        "graphs": list(part.graphs),
        "sweep": part.sweep and _with_methods(part.sweep, methods),
    }


def _title(part: Part, line: Line) -> str:
    """A model's name: "Ditto, personal"; training alone by its method's name alone."""
    entry = part.entry(line.method)
    return entry.shown if (entry.name, line.model) == ("local", "local") else f"{entry.shown}, {line.model}"


def _with_methods(sweep: dict[str, Any], methods: Mapping[str, str]) -> dict[str, Any]:
    """The sweep with the methods' keys in place of their titles."""
    return {**sweep, "runs": [{**run, "method": methods.get(run["method"], "")} for run in sweep["runs"]]}


def _table(part: Part, keys: Mapping[Key, str], columns: list[Column]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    best = best_texts(part, columns)
    for line in part.lines:
        cells = [column.of(line) for column in columns]
        marked = [column.marked and shown[0] in best for column, shown in zip(columns, cells, strict=True)]
        rows.append(
            {
                "model": keys[line.method, line.model],
                "best": any(marked),
                "cells": [
                    {"text": text, "sort": sort if isinstance(sort, str) else number(sort), "bold": bold}
                    for (text, sort), bold in zip(cells, marked, strict=True)
                ],
            }
        )
    count = len(part.seeds)
    over = f"{count} seeds, ± {WIDTH}" if count > 1 else f"{count} seed{'s' if count != 1 else ''}"
    return {
        "caption": f"{part.title}: test data, {over}",
        "columns": [{"title": c.title, "help": c.help, "numeric": c.numeric} for c in columns],
        "rows": rows,
    }


def best_texts(part: Part, columns: list[Column]) -> set[str]:
    """The best score as text, and every other that reads the same mean."""
    column = next(column for column in columns if column.marked)
    shown = [column.of(line) for line in part.lines if line.method not in part.muted]
    scored = [(text, float(sort)) for text, sort in shown if sort is not None]
    if not scored or part.timed:
        return set()
    best = scored[part.metric.best([sort for _, sort in scored])][0]
    return {text for text, _ in scored if text.partition(" ")[0] == best.partition(" ")[0]}


def _small(extra: Extra) -> dict[str, Any]:
    return {"title": extra.title, "header": list(extra.header), "rows": [list(row) for row in extra.rows]}


def _curves(part: Part, keys: Mapping[Key, str]) -> dict[str, Any] | None:
    if not part.quantities:
        return None
    count = len(part.seeds)
    return {
        "quantities": [_quantity(each, keys) for each in part.quantities],
        "band": f"± {SPREAD}, of the seeds that have ended (of {count})" if count > 1 else "",
    }


def _quantity(quantity: Quantity, keys: Mapping[Key, str]) -> dict[str, Any]:
    least, most = (0.0, 1.0) if quantity.percent else (-np.inf, np.inf)  # the possible values, where bands end
    return {
        "title": quantity.title,
        "percent": quantity.percent,
        "series": [
            {
                "model": keys[course.key],
                "rounds": [int(round) for round in course.rounds],
                "mean": numbers(course.mean),
                "low": numbers(np.maximum(course.mean - course.half, least)),
                "high": numbers(np.minimum(course.mean + course.half, most)),
            }
            for course in quantity.courses
            if course.key in keys
        ],
    }
