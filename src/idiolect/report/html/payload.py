"""The page's data: what report.json holds of it, with numbers of five significant digits."""

from typing import Any

from idiolect.report.html.numbers import number

SHOWN = (
    *("title", "source", "protocol", "answer", "questions", "missing", "command", "made_with"),
    *("seeds", "leaks", "chosen", "how_to_read"),
)
OF_CELL = ("id", "title", "notes", "settings", "answer", "methods", "models", "tables", "clients", "graphs", "sweep")


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
        "curves": _curves(cell["curves"]),
        "graph": rounded(cell["graphs"][0]) if cell["graphs"] else None,
    }


def _table(table: dict[str, Any]) -> dict[str, Any]:
    places = [place for place, column in enumerate(table["columns"]) if column["page"]]
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


def _curves(curves: dict[str, Any] | None) -> dict[str, Any] | None:
    if curves is None:
        return None
    drawn = ("model", "rounds", "mean", "low", "high")
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
