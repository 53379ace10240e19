"""The boards of a folder that has only the CSV files of a report: table.csv, and clients.csv where it is there."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import DataError
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import METRICS
from idiolect.report.board import MEAN, WORST, Board, Key
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.summary import OverSeeds

if TYPE_CHECKING:
    from pandas import DataFrame

TABLE, CLIENTS = "table.csv", "clients.csv"
_MEANS = frozenset({"accuracy", "log-loss", "brier", "mse", "mae"})
"""Metrics whose value over all samples is the mean over samples, so that the clients' values give it."""


def boards_in(folder: Path) -> list[Board]:
    """Read the cells of table.csv and clients.csv, which `report.raw` wrote.

    Seeds that were planned but did not end are not in these files. Raises `DataError` for a file that is not such a
    table.
    """
    table = _read(folder / TABLE, ("cell", "method", "model", "metric", "seeds", "pooled", "mean", "worst10"))
    clients = None
    if (folder / CLIENTS).is_file():
        clients = _read(folder / CLIENTS, ("cell", "method", "model", "seed", "client", "n", "loss"))
    table = table.drop_duplicates(["cell", "method", "model"])  # the others are further published values
    boards: list[Board] = []
    for cell, rows in table.groupby("cell", sort=False):
        own: Any = None if clients is None else clients[clients["cell"] == cell]
        boards.append(_board(str(cell), rows, own, folder))
    return boards


def _read(path: Path, needed: tuple[str, ...]) -> "DataFrame":
    import pandas as pd  # here: it loads slowly, and most commands never need it

    try:
        words: Any = dict.fromkeys(("cell", "method", "model", "client", "metric"), str)
        frame = pd.read_csv(path, dtype=words, keep_default_na=False)
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise DataError(f"cannot read {path}: {str(error).splitlines()[0]}") from error
    if missing := [column for column in needed if column not in frame.columns]:
        raise DataError(f"{path} has no column '{missing[0]}': it is not a report's {path.name}")
    return frame


def _board(cell: str, rows: "DataFrame", clients: "DataFrame | None", folder: Path) -> Board:
    compared = str(rows["metric"].iloc[0])
    if compared not in METRICS:
        raise DataError(f"{folder / TABLE}: metric '{compared}' of cell '{cell}' is none")
    others = [name for name, m in METRICS.items() if m.key in rows.columns and _any(rows[m.key]) and name != compared]
    metrics = tuple(METRICS[name] for name in (compared, *others))
    summaries: dict[Key, dict[str, OverSeeds]] = {}
    for row in rows.to_dict(orient="records"):
        found = {compared: _over(row, "pooled"), MEAN: _over(row, "mean"), WORST: _over(row, "worst10")}
        found |= {name: _over(row, METRICS[name].key) for name in others}
        summaries[str(row["method"]), str(row["model"])] = found
    scores: dict[Key, dict[int, ClientScores]] = {}
    names, sizes = tuple[str, ...](), None
    if clients is not None and len(clients):
        names = tuple(dict.fromkeys(clients["client"]))
        scores = _scores(clients, names, metrics, folder)
        sizes = next(iter(next(iter(scores.values())).values())).count
    models: dict[str, list[str]] = {}
    for method, model in summaries:
        models.setdefault(method, []).append(model)
    return Board(
        cell=cell,
        title=cell,
        metrics=metrics,
        planned=max((found[compared].seeds for found in summaries.values()), default=0),
        clients=names,
        scores=scores,
        summaries=summaries,
        names={method: ALGORITHMS[method].title if method in ALGORITHMS else method for method in models},
        local=next((method for method, own in models.items() if own == ["local"]), ""),
        sizes=sizes,
        size_of="test",
    )


def _scores(
    clients: "DataFrame", names: tuple[str, ...], metrics: tuple[Metric, ...], folder: Path
) -> dict[Key, dict[int, ClientScores]]:
    place = {name: number for number, name in enumerate(names)}
    scores: dict[Key, dict[int, ClientScores]] = {}
    keys: list[str] = ["method", "model", "seed"]
    for key, rows in clients.groupby(keys, sort=False):
        method, model, seed = (str(part) for part in key)  # pyright: ignore[reportGeneralTypeIssues]
        at = np.array([place[name] for name in rows["client"]], np.int64)
        if len(set(at.tolist())) < len(at):
            raise DataError(f"{folder / CLIENTS}: '{method}' {model}, seed {seed}, has a client twice")
        count = np.zeros(len(names), np.int64)
        count[at] = _numbers(rows["n"]).astype(np.int64)
        values = {m.name: _placed(rows[m.key], at, len(names)) for m in metrics if m.key in rows.columns}
        loss = _placed(rows["loss"], at, len(names))
        pooled = {name: _mean(column, count) if name in _MEANS else math.nan for name, column in values.items()}
        scores.setdefault((method, model), {})[int(seed)] = ClientScores(model, "test", count, loss, values, pooled)
    return scores


def _placed(column: Any, at: np.ndarray, size: int) -> np.ndarray:
    values = np.full(size, np.nan)
    values[at] = _numbers(column)
    return values


def _numbers(column: Any) -> np.ndarray:
    """A column as numbers; an empty field is NaN, and so is what is no number."""
    import pandas as pd

    return np.nan_to_num(np.asarray(pd.to_numeric(column, errors="coerce"), np.float64), nan=np.nan)


def _mean(values: np.ndarray, count: np.ndarray) -> float:
    has = (count > 0) & np.isfinite(values)
    return float(np.average(values[has], weights=count[has])) if has.any() else math.nan


def _any(column: Any) -> bool:
    return bool(np.isfinite(_numbers(column)).any())


def _over(row: Mapping[Any, Any], name: str) -> OverSeeds:
    mean, std, half = (_number(row.get(name + suffix, "")) for suffix in ("", "_std", "_ci95"))
    seeds = _number(row.get("seeds", 0))
    return OverSeeds(mean, std, half, 0 if math.isnan(seeds) else int(seeds))


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
