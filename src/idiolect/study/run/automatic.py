"""Settings that depend on the data: learning rates by curvature, rounds until the validation loss stops falling."""

import numpy as np

from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.data.encode.labels import lopsided
from idiolect.data.federated import FederatedData, Split
from idiolect.study.run.rates import curvature, rates_of
from idiolect.study.run.resolve import Workbench
from idiolect.study.run.rounds import FIXED
from idiolect.study.spec.experiment import Cell, Experiment, Method

BARS = ("local", "fedavg", "fedavg-ft", "ditto", "fedavg-intercept", "boosted-intercept")


def default_methods() -> list[str]:
    """The methods that `compare` runs on a table where none are named."""
    return [name for name in BARS if name in ALGORITHMS]


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
    if all(cell.stop == "last" and cell.rate == "method" for cell in experiment.cells):
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


def _with_rates(cell: Cell, bench: Workbench, seed: int) -> Cell:
    data = bench.load(cell, seed)
    if cell.rate == "auto" and not isinstance(data.train, Split):
        return _noted(cell, "The samples are generated, so methods keep their own learning rates.", rate="method")
    problem = bench.problem(cell, data, seed)
    known: dict[int, float] = {}
    methods: list[Method] = []
    for method in cell.methods:
        settings = {**hyperparameters(ALGORITHMS[method.name]), **method.spec}
        if cell.rate == "auto":
            batch = int(settings.get("batch_size") or 0)
            batch = min(batch, int(np.max(data.stored("train").sizes)))
            if batch not in known:
                known[batch] = curvature(problem, batch)
            given = rates_of(method.spec, known[batch])
        else:
            given = {"rate": cell.rate} if "rate" in settings and "rate" not in method.spec else {}
        methods.append(method.model_copy(update=given))
    largest = ", ".join(f"{value:.3g}" for value in sorted({*known.values()}))
    line = f"Learning rates that were not set are 1 / L, L = {largest}: the curvature of the training loss."
    return _noted(cell, line if known else "", methods=tuple(methods), rate="method")


def _noted(cell: Cell, line: str, **changes: object) -> Cell:
    """The cell with changed settings and one more line in its note, once."""
    note = cell.note if line in cell.note else f"{cell.note} {line}".strip()
    return cell.model_copy(update={**changes, "note": note})
