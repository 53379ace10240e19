"""The page's data: what report.json holds of it, with numbers of five significant digits."""

import json
import math
from collections.abc import Iterable
from typing import Any

from idiolect.report.text import MISSING

DIGITS = 5


def number(value: Any) -> float | int | None:
    """Round a number to five significant digits; whole ones stay whole, NaN and infinity become None."""
    if value is None:
        return None
    value = float(value)
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def numbers(values: Iterable[Any]) -> list[float | int | None]:
    """Round many numbers."""
    return [number(value) for value in values]


_MARKS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for mark, escape in _MARKS.items():
        text = text.replace(mark, escape)
    return text.encode("utf-8", "backslashreplace").decode()


SHOWN = (
    *("title", "source", "protocol", "decision", "headline", "numbers", "chips", "missing", "command", "made_with"),
    *("seeds", "leaks", "chosen", "how_to_read"),
)
OF_CELL = (
    *("id", "title", "notes", "settings", "decision", "headline", "numbers", "chips", "about", "methods", "models"),
    *("tables", "clients", "graphs", "sweep"),
)


UNTESTED = "hurt vs"
"""How the titles of columns begin that count clients without a test."""


def payload_of(report: dict[str, Any]) -> dict[str, Any]:
    """The page's data as plain JSON values. report: as `as_json.to_dict` makes it."""
    shown = {name: report[name] for name in SHOWN} | {"description": " ".join(report["description"].split())}
    return {**shown, "cells": [_cell(cell, report["metrics"][cell["metric"]]) for cell in report["cells"]]}


def _cell(cell: dict[str, Any], metric: dict[str, Any]) -> dict[str, Any]:
    of_metric = {name: metric[name] for name in ("column", "percent", "higher")}
    methods = [
        {"key": one["key"], "title": one["shown"], "color": one["color"], "muted": one["muted"]}
        for one in cell["methods"]
    ]
    return {
        **{name: rounded(cell[name]) for name in OF_CELL},
        "methods": methods,
        "metric": {"name": cell["metric"], **of_metric, "task": cell["task"]},
        "table": _table(cell["table"]),
        "shares": _shares(cell["table"]),
        "curves": _curves(cell["curves"]),
        "graph": rounded(cell["graphs"][0]) if cell["graphs"] else None,
    }


def _table(table: dict[str, Any]) -> dict[str, Any]:
    places = [
        place
        for place, column in enumerate(table["columns"])
        if column["page"] and not column["title"].startswith(UNTESTED)
    ]
    columns = [table["columns"][place] for place in places]
    return {
        "caption": table["title"],
        "columns": [
            {
                "title": f"{column['title']}, {column['unit']}" if column["unit"] else column["title"],
                "help": column["help"],
                "numeric": column["numeric"],
            }
            for column in columns
        ],
        "rows": [
            {
                "model": row["model"],
                "best": row["best"],
                "cells": [rounded(row["cells"][place]) for place in places],
            }
            for row in table["rows"]
        ],
    }


def _shares(table: dict[str, Any]) -> dict[str, Any] | None:
    """The shares of clients that score worse, which are not tested, as a small table; None without any."""
    heads = [column["title"] for column in table["columns"]]
    places = [place for place, title in enumerate(heads) if title.startswith(UNTESTED)]
    rows = [[row["cells"][place]["text"] for place in (0, 1, *places)] for row in table["rows"]]
    known = any(text != MISSING for row in rows for text in row[2:])
    title = "Shares of clients that score worse, tested or not"
    return {"title": title, "header": [heads[place] for place in (0, 1, *places)], "rows": rows} if known else None


def _curves(curves: dict[str, Any] | None) -> dict[str, Any] | None:
    if curves is None:
        return None
    drawn = ("model", "rounds", "mean", "low", "high", "improving")
    quantities = [
        {**each, "series": [{name: one[name] for name in drawn} for one in each["series"]]}
        for each in curves["quantities"]
    ]
    return rounded({**curves, "quantities": quantities})


def rounded(value: Any) -> Any:
    """A value with every number rounded to five significant digits."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return number(value) if isinstance(value, float) else value
