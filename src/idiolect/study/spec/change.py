"""Change an experiment: settings by their names, as `--set` does, and tables that have moved since its runs began."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from idiolect.core.errors import ConfigError, DataError, require, unknown
from idiolect.data.sets.registry import OF_PATH
from idiolect.study.spec.experiment import Cell, Experiment, experiment_of


def override(experiment: Experiment, assignments: Mapping[str, Any], only: Sequence[str] = ()) -> Experiment:
    """Override settings by key, everywhere the key occurs. Raises `ConfigError` on an unknown key.

    A key belongs to the experiment (`seeds`), to every cell (`rounds`, `data.partition`, `model.l2`), or to a method
    (`pfedme.rate`). Changes of cells and methods are added to the description. only: the cells and methods that are
    kept, as in `Experiment.only`; those that are left out need not know a key.
    """
    values = experiment.only(tuple(only)).model_dump(mode="json")
    for key, value in assignments.items():
        head, _, rest = key.partition(".")
        cells = values["cells"]
        if rest and head in ("data", "model"):
            for cell in cells:
                cell[head] = {**cell[head], rest: value}
        elif rest:
            hits = [m for cell in cells for m in cell["methods"] if head and head in (m["name"], m["label"])]
            if not hits:
                raise unknown("method", head, {m["name"] for cell in cells for m in cell["methods"]})
            for method in hits:
                method[rest] = value
        elif key in ("name", "title", "source", "protocol", "description", "seeds", "first_seed", "across"):
            values[key] = value
        elif key in Cell.model_fields:
            for cell in cells:
                cell[key] = value
        else:
            raise unknown("key", key, {*Cell.model_fields, *Experiment.model_fields} - {"cells"})
    if not isinstance(values["description"], str):
        raise ConfigError(f"--set: description = {values['description']!r} must be a text")
    edits = [f"{key} = {value}" for key, value in assignments.items() if key not in Experiment.model_fields]
    if edits:
        values["description"] = f"{values['description'].rstrip()}\n\nChanged with --set: {', '.join(edits)}.".strip()
    return experiment_of(values, "--set")


def located(experiment: Experiment, folder: Path, started_in: str | None, given: str | None = None) -> Experiment:
    """The experiment with the paths of its tables as they are now; a table at its old place stays there.

    A missing table is searched where it was as seen from the run's folder, then in that folder, then next to it.
    folder: of the run now; started_in: then. given: the user's word for it. Raises `DataError` if a table is missing,
    `ConfigError` if a path is given for an experiment with several tables or none.
    """
    paths = {str(cell.data["path"]) for cell in experiment.cells if _is_table(cell)}
    if given is not None:
        require(len(paths) == 1, f"--data is for a run with one table, and this one has {len(paths)}")
        places = {path: os.path.abspath(given) for path in paths}
    else:
        places = {path: _place(path, folder, started_in) for path in paths}
    cells = (
        cell.model_copy(update={"data": {**cell.data, "path": places[str(cell.data["path"])]}})
        if _is_table(cell)
        else cell
        for cell in experiment.cells
    )
    return experiment.model_copy(update={"cells": tuple(cells)})


def _is_table(cell: Cell) -> bool:
    return cell.data.get("name") in OF_PATH and isinstance(cell.data.get("path"), str)


def _place(path: str, folder: Path, started_in: str | None) -> str:
    name, here = Path(path).name, Path(os.path.abspath(folder))
    relative = [here / os.path.relpath(path, started_in)] if started_in and os.path.isabs(path) else []
    for place in (Path(path), *relative, here / name, here.parent / name):
        if os.path.exists(place):
            return os.path.abspath(place) if place != Path(path) else path
    raise DataError(
        f"{path}: no such file, nor is {name} in '{folder}' or next to it; say where the table is now: "
        f"idiolect resume {folder} --data FILE"
    )
