"""Tables that have moved since a run was started: where they are now, so that the run can go on."""

import os
from pathlib import Path

from idiolect.core.errors import DataError, require
from idiolect.study.experiment import Cell, Experiment


def located(experiment: Experiment, folder: Path, started_in: str | None, given: str | None = None) -> Experiment:
    """The experiment with the paths of its tables as they are now; a table at its old place stays there.

    A missing table is looked for where it lay as seen from the run's folder, then in that folder, then beside it.
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
    return cell.data.get("name") == "table" and isinstance(cell.data.get("path"), str)


def _place(path: str, folder: Path, started_in: str | None) -> str:
    name, here = Path(path).name, Path(os.path.abspath(folder))
    relative = [here / os.path.relpath(path, started_in)] if started_in and os.path.isabs(path) else []
    for place in (Path(path), *relative, here / name, here.parent / name):
        if os.path.exists(place):
            return os.path.abspath(place) if place != Path(path) else path
    raise DataError(
        f"{path}: no such file, nor is {name} in '{folder}' or beside it; say where the table is now: "
        f"idiolect resume {folder} --data FILE"
    )
