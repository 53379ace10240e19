"""Held-out clients of a comparison: scored as new clients when a run has ended."""

from collections.abc import Mapping
from dataclasses import replace

from jaxtyping import PyTree

from idiolect.core.errors import ConfigError, DivergedError
from idiolect.metrics.base import Metric
from idiolect.runtime.round import State
from idiolect.runtime.simulate import Simulation
from idiolect.study.personalized import Finished
from idiolect.study.store import RunRow, Store

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
