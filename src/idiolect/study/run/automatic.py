"""Settings that depend on the data: learning rates by curvature, rounds until the validation loss stops falling."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from idiolect.algorithms.base import Algorithm
from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.data.encode.labels import lopsided
from idiolect.data.federated import FederatedData, Split
from idiolect.study.run.rates import curvature, rates_of, whole_or_batch
from idiolect.study.run.resolve import Workbench
from idiolect.study.run.rounds import FIXED
from idiolect.study.spec.assemble import Problem
from idiolect.study.spec.experiment import Cell, Experiment

PUBLISHED = ("pfedme", "perfedavg", "fedavg-ft", "local", "global")
"""The methods of `compare` on a published data set."""
BARS = ("local", "fedavg", "fedavg-ft", "ditto", "fedavg-intercept", "boosted-intercept")


def default_methods(own: bool = True) -> list[str]:
    """The methods that `compare` runs where none are named. own: on a table or arrays, not on published data."""
    return [name for name in (BARS if own else PUBLISHED) if name in ALGORITHMS]


def default_model(data: FederatedData) -> str:
    """The name of the model where none is given: linear regression, or logistic regression of two or more classes."""
    return "linear" if data.task == "regression" else "mlr"


def is_own(data: FederatedData) -> bool:
    """Whether these are a user's own rows: a table, arrays, or clients that were written to a folder."""
    return data.provenance.get("source") in ("table", "arrays", "folder")


def default_metric(data: FederatedData) -> tuple[str, str]:
    """(metrics, a line that says why) where nearly all labels are one class; ("", "") elsewhere.

    Two classes: AUROC, more: log-loss. Accuracy stays as a further metric.
    """
    if data.task != "classification" or data.own_labels or not isinstance(data.train, Split):
        return "", ""
    found = lopsided(data.train.y, data.classes)
    if found is None:
        return "", ""
    metric = "auroc" if len(data.classes) == 2 else "log-loss"
    line = f"{found[1]:.1%} of the training labels are '{found[0]}', so {metric} compares models, not accuracy."
    return f"{metric},accuracy", line


def with_metric(experiment: Experiment, bench: Workbench) -> Experiment:
    """The experiment of one cell with the metric that fits its labels; a metric that is named stays."""
    cell = experiment.cells[0]
    if cell.metric:
        return experiment
    metric, line = default_metric(bench.load(cell, experiment.first_seed))
    return experiment.model_copy(update={"cells": (_noted(cell, line, metric=metric),)}) if metric else experiment


def resolved(experiment: Experiment, bench: Workbench) -> Experiment:
    """The experiment with numbers in place of what depends on the data; without such settings, itself.

    Rates are of the first seed's data and the same for all seeds.
    """
    if not any(cell.automatic for cell in experiment.cells):
        return experiment
    cells = tuple(_resolved(cell, bench, experiment.first_seed) for cell in experiment.cells)
    return experiment.model_copy(update={"cells": cells})


def _resolved(cell: Cell, bench: Workbench, seed: int) -> Cell:
    if cell.rate != "method":
        cell = _with_rates(cell, bench, seed)
    if cell.stop == "settled" and bench.load(cell, seed).validation.count == 0:
        line = f"No client has validation rows: every method trains for {FIXED} rounds, and the last round counts."
        splits = tuple(split for split in cell.splits if split != "validation")
        return _noted(cell, line, rounds=FIXED, stop="last", select="last", splits=splits)
    return cell


def with_rates(method: Algorithm, spec: Mapping[str, Any], problem: Problem, rate: float | str) -> Algorithm:
    """The method with the rates and the batch size that its specification leaves open; see `open_settings`."""
    given = open_settings(spec, problem, rate)
    return replace(method, **given) if given else method


def open_settings(spec: Mapping[str, Any], problem: Problem, rate: float | str) -> dict[str, Any]:
    """The rates and the batch size that a method's specification leaves open.

    spec: with the method's name and what it sets. rate: a number, "auto" (see `Fitted`) or "method" (none).
    """
    if rate == "method" or (rate == "auto" and not isinstance(problem.data.train, Split)):
        return {}
    if rate == "auto":
        return Fitted(problem).settings(spec)
    return {"rate": rate} if _takes_rate(spec) else {}


def _with_rates(cell: Cell, bench: Workbench, seed: int) -> Cell:
    data = bench.load(cell, seed)
    if cell.rate == "auto" and not isinstance(data.train, Split):
        return _noted(cell, "The samples are generated, so methods keep their own learning rates.", rate="method")
    if cell.rate != "auto":
        given = [{"rate": cell.rate} if _takes_rate(method.spec) else {} for method in cell.methods]
        methods = tuple(m.model_copy(update=one) for m, one in zip(cell.methods, given, strict=True))
        return _noted(cell, "", methods=methods, rate="method")
    fitted = Fitted(bench.problem(cell, data, seed))
    methods = tuple(method.model_copy(update=fitted.settings(method.spec)) for method in cell.methods)
    return _noted(cell, fitted.line, methods=methods, rate="method")


def _takes_rate(spec: Mapping[str, Any]) -> bool:
    return "rate" not in spec and "rate" in hyperparameters(ALGORITHMS[spec["name"]])


class Fitted:
    """The settings of methods that follow from a problem's training rows: rates and batch sizes.

    Curvatures are computed once per batch size.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.largest = problem, int(np.max(problem.data.stored("train").sizes))
        self._known: dict[int, float] = {}
        self._batches: set[int] = set()

    def settings(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The batch size and the rates that a method's specification leaves open. spec: with its name.

        A method with learning rates takes all of a client's rows in each step where no client has more than
        `WHOLE`, else `BATCH` rows; its rates are those of `rates_of`.
        """
        known = hyperparameters(ALGORITHMS[spec["name"]])
        if "rate" not in known:
            return {}
        size = whole_or_batch(self.largest)
        given = {"batch_size": size} if "batch_size" in known and "batch_size" not in spec else {}
        self._batches |= {*given.values()}
        batch = min(int({**known, **spec, **given}.get("batch_size") or 0), self.largest)
        if batch not in self._known:
            self._known[batch] = curvature(self.problem, batch)
        return given | rates_of(spec, self._known[batch])

    @property
    def line(self) -> str:
        """The numbers that were taken, in a sentence or two; empty without any."""
        if not self._known:
            return ""
        largest = ", ".join(f"{value:.3g}" for value in sorted({*self._known.values()}))
        line = f"Learning rates that were not set are 1 / L, L = {largest}: the curvature of the training loss."
        sizes = ["all rows of a client" if size == 0 else f"{size} rows" for size in sorted(self._batches)]
        return f"{line} Batch sizes that were not set are {', '.join(sizes)}." if sizes else line


def _noted(cell: Cell, line: str, **changes: object) -> Cell:
    """The cell with changed settings and one more line in its note, once."""
    note = cell.note if line in cell.note else f"{cell.note} {line}".strip()
    return cell.model_copy(update={**changes, "note": note})
