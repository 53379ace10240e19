"""What figures and tables of clients need of one cell, whether it comes from a run or from CSV files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from idiolect.core.errors import unknown
from idiolect.metrics.base import Metric
from idiolect.report.comparison import SELECTIONS, cell_title
from idiolect.report.names import method_names, not_chosen
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.analyse import resolution
from idiolect.study.analyse.outcomes import Line
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell
from idiolect.study.store.summary import OverSeeds, over_seeds, summarise

MEAN, WORST = "client mean", "worst 10 %"
"""The columns of a table that are not a metric over all samples."""
Key = tuple[str, str]
"""(method's title, named model)."""


@dataclass(frozen=True, eq=False)
class Board:
    """One cell's scores. scores: (method, model) -> seed -> every client's, in the table's order.

    summaries: (method, model) -> column -> its value over seeds; a column is a metric's name (over all samples),
    `MEAN` or `WORST` (of the first metric). names: what figures call a method. muted: methods not chosen. local: the
    title of training alone, empty without. sizes: each client's samples, of the split `size_of`. methods, models:
    the only ones to draw; all methods, and each one's first model, if empty.
    """

    cell: str
    title: str
    metrics: tuple[Metric, ...]
    planned: int
    clients: tuple[str, ...]
    scores: Mapping[Key, Mapping[int, ClientScores]]
    summaries: Mapping[Key, Mapping[str, OverSeeds]]
    names: Mapping[str, str]
    muted: frozenset[str] = frozenset()
    local: str = ""
    sizes: Int[np.ndarray, "clients"] | None = None
    size_of: str = "test"
    selected: str = ""
    methods: tuple[str, ...] = ()
    models: tuple[str, ...] = ()

    @property
    def metric(self) -> Metric:
        """The metric by which models are compared."""
        return self.metrics[0]

    @cached_property
    def first(self) -> dict[str, str]:
        """Each method's first model."""
        found: dict[str, str] = {}
        for method, model in self.summaries:
            found.setdefault(method, model)
        return found

    def only(self, methods: Sequence[str], models: Sequence[str]) -> "Board":
        """The board of which only these methods and models are drawn. Raises `ConfigError` for an unknown one."""
        for name in methods:
            if name not in self.first:
                raise unknown("method of this cell", name, self.first)
        known = {model for _, model in self.summaries}
        for name in models:
            if name not in known:
                raise unknown("model of this cell", name, known)
        return replace(self, methods=tuple(methods), models=tuple(models))

    def by_metric(self, name: str) -> "Board":
        """The board by another of its metrics. Raises `ConfigError` for one that was not measured."""
        known = {metric.name: metric for metric in self.metrics}
        if name not in known:
            raise unknown("metric of this run", name, known)
        if name == self.metric.name:
            return self
        rest = tuple(metric for metric in self.metrics if metric.name != name)
        other = replace(self, metrics=(known[name], *rest))
        summaries = {
            key: {**found, **{c: over_seeds([*other.by_seed(key, c).values()]) for c in (MEAN, WORST)}}
            for key, found in self.summaries.items()
        }
        return replace(other, summaries=summaries)

    def drawn(self, *, every: bool = False) -> list[Key]:
        """The named models to draw. every: all of a method, where none is named."""
        return [
            (method, model)
            for method, model in self.summaries
            if (not self.methods or method in self.methods)
            and (model in self.models if self.models else every or self.first[method] == model)
        ]

    def measured(self, key: Key) -> Mapping[int, ClientScores]:
        """Seed -> the clients' scores of a named model; empty where no run is finished."""
        return self.scores.get(key, {})

    def reference(self, seed: int) -> Float[np.ndarray, "clients"] | None:
        """Every client's score when it trains alone with the same seed; None where that was not run."""
        scores = self.measured((self.local, "local")).get(seed) if self.local else None
        return None if scores is None else scores.values[self.metric.name]

    def by_seed(self, key: Key, column: str) -> dict[int, float]:
        """Seed -> a column's value, as far as it is known seed by seed; NaN elsewhere."""
        if column in (MEAN, WORST):
            part = "mean" if column == MEAN else "worst10"
            return {s: getattr(summarise(scores, self.metric), part) for s, scores in self.measured(key).items()}
        return {seed: scores.pooled.get(column, float("nan")) for seed, scores in self.measured(key).items()}

    def resolution(self, column: str) -> float:
        """By how much one test sample changes a column's value of one seed, see `intervals.paired`."""
        scores = [each for by_seed in self.scores.values() for each in by_seed.values()]
        if column in (MEAN, WORST):
            return (resolution.of_clients if column == MEAN else resolution.of_worst)(scores, self.metric)
        known = {metric.name: metric for metric in self.metrics}
        return resolution.of_samples(scores, known[column]) if column in known else 0.0

    def hurt(self, key: Key, seed: int) -> Bool[np.ndarray, "clients"]:
        """Which clients are worse off than alone, with the same seed; nobody without that reference."""
        values, alone = self.measured(key)[seed].values[self.metric.name], self.reference(seed)
        return np.zeros(len(values), bool) if alone is None else self.metric.worse(values, alone)

    @property
    def counts(self) -> list[int]:
        """The finished seeds of every drawn model that has any."""
        return [len(self.measured(key)) for key in self.drawn() if self.measured(key)]


def board_of(results: Results, cell: Cell) -> Board:
    """Collect a cell of a run."""
    keys = [(method, model) for method in cell.methods for model in results.names(cell, method)]
    lines = {(line.method, line.model): line for line in results.lines if line.cell == cell.id}
    scores = {(method.title, model): results.by_seed(cell, method, model) for method, model in keys}
    sizes, size_of = _sizes(results, cell)
    return Board(
        cell=cell.id,
        title=cell_title(cell),
        metrics=results.metrics(cell),
        planned=results.experiment.seeds,
        clients=tuple(results.clients(cell)),
        scores={key: found for key, found in scores.items() if found},
        summaries={(method.title, model): columns_of(lines[method.title, model]) for method, model in keys},
        names=method_names([cell]),
        muted=not_chosen(results, cell),
        local=next((method.title for method in cell.methods if method.name == "local"), ""),
        sizes=sizes,
        size_of=size_of,
        selected=SELECTIONS[cell.select],
    )


def columns_of(line: Line) -> dict[str, OverSeeds]:
    """The columns of a line of the comparison's table."""
    return {**line.metrics, MEAN: line.mean, WORST: line.worst10}


def _sizes(results: Results, cell: Cell) -> tuple[Int[np.ndarray, "clients"] | None, str]:
    """Each client's samples, and the split that they are of: training where it was evaluated, else test."""
    for split, name in (("train", "training"), ("test", "test")):
        for method in cell.methods:
            model = results.names(cell, method)[0]
            for row in results.finished(cell, method):
                curve = results.store.curve(row.id, model, split, results.metric(cell).name)
                scores = results.store.scores(row.id, curve[-1][0], model, split) if curve else None
                if scores is not None:
                    return scores.count, name
    return None, "test"
