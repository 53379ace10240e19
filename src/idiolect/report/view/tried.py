"""The settings of a cell that were tried, as the dimensions of a figure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.study.analyse.results import Results, validation_score
from idiolect.study.spec.experiment import Cell

_WIDE = 50  # a scale is logarithmic if the largest value is this many times the smallest


def dimensions(runs: Sequence[Mapping[str, Any]], score_title: str) -> dict[str, Any] | None:
    """The sweep of the page's data; None if nothing was tried.

    runs: {"method", "values": hyper-parameter -> value, "score", "chosen"}. One dimension for each hyper-parameter
    that takes several values; texts and truth values are categories.
    """
    if not runs:
        return None
    keys = list(dict.fromkeys(key for run in runs for key in run["values"]))
    several = [key for key in keys if len({repr(run["values"].get(key)) for run in runs}) > 1] or keys[:1]
    columns = {key: [_plain(run["values"].get(key)) for run in runs] for key in several}
    return {
        "dimensions": [_dimension(key, columns[key]) for key in several],
        "runs": [
            {
                "method": run["method"],
                "values": [columns[key][place] for key in several],
                "score": run["score"],
                "chosen": bool(run["chosen"]),
            }
            for place, run in enumerate(runs)
        ],
        "score_title": score_title,
    }


def _plain(value: Any) -> Any:
    """A number, a text, or None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _dimension(key: str, values: Sequence[Any]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in known):
        return {"title": key, "log": False, "values": list(dict.fromkeys(str(value) for value in known))}
    return {"title": key, "log": bool(known) and min(known) > 0 and max(known) / min(known) >= _WIDE}


def tuned_sweep(results: Results, cell: Cell) -> dict[str, Any] | None:
    """The settings of a cell whose methods are tuned; None for any other cell, and before any has a score."""
    if not cell.tune:
        return None
    best = {one.title for one in results.best(cell).values()}
    runs: list[dict[str, Any]] = [
        {
            "method": method.title,
            "values": {**hyperparameters(ALGORITHMS[method.name]), **(method.model_extra or {})},
            "score": validation_score(results, cell, method, results.names(cell, method)[0]).mean,
            "chosen": method.title in best,
        }
        for method in cell.methods
    ]
    title = f"validation {results.metric(cell).column}"
    return dimensions(runs, title) if any(np.isfinite(run["score"]) for run in runs) else None
