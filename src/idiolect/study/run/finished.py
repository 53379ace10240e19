"""A finished run of a folder, loaded for clients that join later; nothing is written."""

import os
from dataclasses import dataclass
from pathlib import Path

from idiolect.core.errors import ConfigError, StoreError, require
from idiolect.data.federated import FederatedData
from idiolect.runtime.checkpoint import load_checkpoint
from idiolect.study.run.engine import schedule_of
from idiolect.study.run.personalized import Finished
from idiolect.study.run.recorder import StoreRecorder
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import Cell, Method, digest, metrics_of, run_id
from idiolect.study.store.claim import stored_experiment
from idiolect.study.store.store import RunRow, Store


@dataclass(frozen=True, eq=False)
class Loaded:
    """A finished run of a folder, its cell and its data."""

    row: RunRow
    cell: Cell
    method: Method
    data: FederatedData
    finished: Finished


def load_finished(
    store: Store, bench: Workbench, *, cell: str = "", method: str = "", seed: int | None = None
) -> Loaded:
    """Load one finished run: its states in the rounds that count, and the data on which it was trained.

    cell, method: the cell's id, the method's label or name; they may be left out where a folder has only one.
    seed: by default the first that is finished. Raises `ConfigError` if several runs are meant, `StoreError` if none
    is finished, if its data have changed, or if its checkpoint is missing or damaged.
    """
    chosen, row = _chosen(store, cell, method, seed)
    the_cell, the_method = chosen
    for part in ("data", "model"):
        require(
            "own" not in row.config.get(part, {}),
            f"the {part} of run {row.id} were made in Python, not named; use run.personalize there",
        )
    require(the_cell.private == "memory", f"run {row.id} has private = 'file', which new clients do not go with")
    data = bench.load(the_cell, row.seed)
    store.check(bench.row(the_cell, the_method, data, row.seed))
    problem = bench.problem(the_cell, data, row.seed)
    simulation = bench.simulation(the_cell, the_method, problem)
    metrics, params = metrics_of(the_cell, data.task), problem.params
    like = simulation.init(row.seed, params)
    path = store.checkpoint_path(row.id)
    checkpoint = load_checkpoint(path, like, digest(row.config_hash, row.data_hash))
    if checkpoint is None:
        raise StoreError(f"{path} is missing, and with it the trained state of run {row.id}; run it again")
    chooser = metrics[0] if the_cell.select == "best-validation" else None
    recorder = StoreRecorder(store, row, schedule_of(the_cell, data, simulation.algorithm), chooser)
    states = {name: recorder.chosen(name, checkpoint.state) for name in simulation.offered}
    return Loaded(row, the_cell, the_method, data, Finished(simulation, params, metrics, states))


def _chosen(store: Store, cell: str, method: str, seed: int | None) -> tuple[tuple[Cell, Method], RunRow]:
    experiment = stored_experiment(store)
    found = [
        (c, m, row)
        for c in experiment.cells
        for m in c.methods
        for s in experiment.seed_list
        if (row := store.run(run_id(c.id, m.title, s))) is not None and row.status == "done"
    ]
    if not found:
        raise StoreError(f"'{store.folder}' holds no finished run; continue with: idiolect resume {store.folder}")
    fitting = [
        (c, m, row)
        for c, m, row in found
        if cell in ("", c.id) and method in ("", m.title, m.name) and seed in (None, row.seed)
    ]
    asked = ", ".join(
        f"{what} {value}" for what, value in (("cell", cell), ("method", method), ("seed", seed)) if value
    )
    if not fitting:
        runs = ", ".join(row.id for _, _, row in found[:12])
        raise ConfigError(f"'{store.folder}' holds no finished run of {asked}; it has: {runs}")
    groups = {(c.id, m.title): None for c, m, _ in fitting}
    if len(groups) > 1:
        names = ", ".join("/".join(group) for group in groups)
        option = "--method" if len({c for c, _ in groups}) == 1 else "--cell and --method"
        raise ConfigError(f"'{store.folder}' holds several methods ({names}); name one with {option}")
    c, m, row = fitting[0]
    return (c, m), row


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a path is in a folder, or is the folder."""
    # realpath, since Path.resolve raises in a loop of links
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
