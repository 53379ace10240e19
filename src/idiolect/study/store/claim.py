"""A folder is bound to one experiment, which is stored with its runs."""

from collections.abc import Sequence
from typing import Any

from idiolect.core.errors import ConfigError, StoreError
from idiolect.study.spec.experiment import Cell, Experiment, experiment_of
from idiolect.study.store.store import DATABASE, MOVED, RunRow, Store, changes


def claim(store: Store, experiment: Experiment, runs: Sequence[RunRow]) -> None:
    """Bind a folder to one experiment. More seeds, cells or methods of it may be added later.

    runs: all of the experiment's runs, as they will be registered. Raises `StoreError`, naming the difference, if the
    folder holds another experiment, or runs with other settings or data.
    """
    new = experiment.model_dump(mode="json")
    old: dict[str, Any] | None = store.fact("experiment")
    for run in runs:
        store.check(run)
    if old is not None:
        for key in ("name", "protocol", "first_seed"):
            if old[key] != new[key]:
                raise StoreError(
                    f"'{store.folder}' holds an experiment with {key} {old[key]!r}, not {new[key]!r}; "
                    "use another --out"
                )
        old_cells = {cell["id"]: cell for cell in old["cells"]}
        cells_with_runs = {row.cell for row in store.runs()}
        for cell in new["cells"]:
            old_cell = old_cells.get(cell["id"])
            if old_cell is not None:
                if cell["id"] in cells_with_runs and (
                    changed := [c for c in changes(_settings(old_cell), _settings(cell)) if c != MOVED]
                ):
                    raise StoreError(
                        f"'{store.folder}' holds runs of cell '{cell['id']}' with other settings (changed: "
                        f"{', '.join(changed)}); use another --out, or set it back"
                    )
                titles = {m["label"] or m["name"] for m in cell["methods"]}
                cell["methods"] += [m for m in old_cell["methods"] if (m["label"] or m["name"]) not in titles]
        new["cells"] += [c for c in old["cells"] if c["id"] not in {cell["id"] for cell in new["cells"]}]
        new["seeds"] = max(new["seeds"], old["seeds"])
    store.set_fact("experiment", new)


def _settings(cell: dict[str, Any]) -> dict[str, Any]:
    new = {"stop": "last", "rate": "method"}  # folders of earlier versions do not have them
    return {key: value for key, value in {**new, **cell}.items() if key not in ("methods", *Cell.PRESENTATION)}


def stored_experiment(store: Store) -> Experiment:
    """Load the experiment that a folder holds. Raises `StoreError` if it holds none, or if it has lost it."""
    values = store.fact("experiment")
    if not isinstance(values, dict):
        file = store.folder / DATABASE
        if (fault := store.fault()) or store.runs():
            reason = fault or "it holds runs, but not the experiment that they are of"
            raise StoreError(f"{file} is damaged: {reason}; restore it, or use another folder")
        begin = "begin one there, or name another folder"
        raise StoreError(f"{file} holds no experiment: no run has begun in '{store.folder}'; {begin}")
    try:
        return experiment_of(values, str(store.folder))
    except ConfigError as error:
        raise StoreError(f"the experiment in {store.folder / DATABASE} cannot be read: {error}") from error
