"""Held-out clients of a comparison: scored as new clients when a run has ended, and their results over seeds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from jaxtyping import PyTree

from idiolect.core.errors import ConfigError, DivergedError
from idiolect.metrics.base import Metric
from idiolect.runtime.evaluate import ClientScores
from idiolect.runtime.round import State
from idiolect.runtime.simulate import Simulation
from idiolect.study.analyse import resolution
from idiolect.study.analyse.intervals import Difference, paired
from idiolect.study.analyse.results import Results
from idiolect.study.run.personalized import Finished
from idiolect.study.spec.experiment import Cell, Method
from idiolect.study.store.store import RunRow, Store
from idiolect.study.store.summary import OverSeeds, over_seeds, summarise

NEW = "new"
"""The name, in the store, of the held-out clients' test samples."""


def score_held_out(
    store: Store,
    run: RunRow,
    simulation: Simulation,
    params: PyTree,
    metrics: tuple[Metric, ...],
    states: Mapping[str, State],
) -> None:
    """Give the held-out clients their models and record their scores; nothing if no client is held out.

    states: named model -> the state of the round that counts. If the method has nothing for new clients, or a new
    client's models diverge, the reason is recorded, and the run is none the worse.
    """
    new = simulation.data.held_out
    if new is None:
        return
    try:
        made = Finished(simulation, params, metrics, states).personalize(new)
        results = [replace(made.scores(model), split=NEW) for model in states]
    except (ConfigError, DivergedError) as error:
        store.set_fact(f"{NEW} {run.id}", str(error))
        return
    row = store.run(run.id) or run
    store.record(run.id, row.round, results, seconds=row.seconds, compile_seconds=row.compile_seconds)


@dataclass(frozen=True)
class NewLine:
    """One named model on known and on new clients: the mean over clients of the compared metric, over seeds.

    gap: new minus known with its interval over seeds, in the units in which the metric is shown; None with fewer than
    two seeds. mean: the same difference of the means.
    """

    method: str
    model: str
    known: OverSeeds
    new: OverSeeds
    mean: float
    gap: Difference | None


def new_lines(results: Results, cell: Cell) -> list[NewLine]:
    """Every named model with scores of held-out clients, in the table's order."""
    return [
        line
        for method in cell.methods
        for model in results.names(cell, method)
        if (line := _line(results, cell, method, model)) is not None
    ]


def refusals(results: Results, cell: Cell) -> dict[str, str]:
    """Method -> why it gave its held-out clients nothing."""
    return {
        method.title: reason
        for method in cell.methods
        for row in results.finished(cell, method)
        if (reason := results.store.fact(f"{NEW} {row.id}")) is not None
    }


def _line(results: Results, cell: Cell, method: Method, model: str) -> NewLine | None:
    metric, known, new = results.metric(cell), list[float](), list[float]()
    measured: list[ClientScores] = []
    rows = {row.seed: row for row in results.finished(cell, method)}
    for seed, scores in results.by_seed(cell, method, model).items():
        theirs = results.store.scores(rows[seed].id, rows[seed].round, model, NEW)
        if theirs is None or metric.name not in theirs.values:
            continue
        pair = summarise(scores, metric).mean, summarise(theirs, metric).mean
        if not any(map(math.isnan, pair)):
            known.append(metric.unit * pair[0])
            new.append(metric.unit * pair[1])
            measured += [scores, theirs]
    if not known:
        return None
    step = metric.unit * resolution.of_clients(measured, metric)
    gap = paired(new, known, resolution=step) if len(new) > 1 else None
    over = over_seeds([value / metric.unit for value in known]), over_seeds([value / metric.unit for value in new])
    return NewLine(method.title, model, *over, sum(new) / len(new) - sum(known) / len(known), gap)
