"""The data that a command reads, from what was typed: their specification, their default model, their folder."""

import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any

from idiolect import experiments
from idiolect.core.errors import ConfigError, DataError, StoreError, unknown
from idiolect.data.divide.division import smallest
from idiolect.data.federated import FederatedData
from idiolect.data.files.folder import is_folder_of_data
from idiolect.data.sets import registry as sources
from idiolect.study.advice.draws import TEST, VALIDATION, again
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import Experiment, digest
from idiolect.study.store.store import DATABASE

TABLES = (".csv", ".tsv", ".parquet", ".pq", ".json", ".jsonl", ".ndjson", ".xlsx", ".xls", ".gz")
"""The suffixes of tables' files."""
START = "mlr"
"""The model that stands for the default one until the data are read, which say the task."""
_DIVISION = {"test": TEST, "validation": VALIDATION}
_NEAR = 5
"""Files of the folder that an error names, at most."""


def data_spec(data: str, client: str, label: str) -> tuple[dict[str, Any], str]:
    """Parse a known source, a table's file or a folder of encoded data: (specification, short name).

    Raises `DataError` if there is no such file, `ConfigError` if it is neither.
    """
    path = Path(data)
    if path.suffix.lower() == ".toml":
        raise ConfigError(f"'{data}' is an experiment file; run it with: idiolect run {data}")
    if is_folder_of_data(path):
        return {"name": "encoded", "path": os.path.abspath(path)}, path.resolve().stem
    if is_file(path) or looks_like_file(data):
        check_file(path)
        name = path.with_suffix("").stem if path.suffix.lower() == ".gz" else path.stem
        return {"name": "table", "path": os.path.abspath(path), "client": client, "label": label}, name
    if data not in sources.SOURCES or data in sources.OF_PATH:
        if _is_folder(path):
            check_file(path)
        error = unknown("data set", data, [s for s in sources.SOURCES if s not in sources.OF_PATH])
        raise ConfigError(
            f"{error}; or give the path of a CSV, Parquet, JSON or Excel file, or of a folder of 'idiolect encode'"
        )
    return {"name": data}, data


def looks_like_file(text: str) -> bool:
    """Whether a text is meant as a file's path, not as the name of a data set."""
    return Path(text).suffix.lower() in TABLES or os.sep in text


def check_file(path: Path) -> None:
    """Raise `DataError` if there is no such file, with the tables in its folder that have a similar name."""
    if is_file(path):
        return
    if _is_folder(path):
        raise DataError(f"'{path}' is a folder; name the table's file in it{_of(_tables_in(path))}")
    if not _is_folder(path.parent):
        raise DataError(f"no such file: {path}; there is no folder '{path.parent}'")
    there = _tables_in(path.parent)
    by_stem = {name.partition(".")[0].lower(): name for name in there}
    near = get_close_matches(path.name.partition(".")[0].lower(), by_stem, n=1)
    hint = f"; did you mean '{path.parent / by_stem[near[0]]}'?" if near else _of(there)
    raise DataError(f"no such file: {path}{hint}")


def _tables_in(folder: Path) -> list[str]:
    try:
        return sorted(one.name for one in folder.iterdir() if one.suffix.lower() in TABLES)
    except OSError:
        return []


def _of(tables: list[str]) -> str:
    if not tables:
        return ""
    more = ", ..." if len(tables) > _NEAR else ""
    return f"; tables there: {', '.join(tables[:_NEAR])}{more}"


def is_file(path: Path) -> bool:
    """Whether a file is there; of a name that no file can have, too."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def check_runs(folder: Path) -> None:
    """Raise `StoreError` for a folder without runs, with the folders near it that have some."""
    if is_file(folder / DATABASE):
        return
    why = "it is a file" if is_file(folder) else "" if _is_folder(folder) else "there is no such folder"
    found = sorted({one.parent for place in (folder, folder.parent, Path("runs"), Path()) for one in _runs_in(place)})
    near = get_close_matches(folder.name, [one.name for one in found], n=1) if folder.name else []
    hint = "'idiolect compare' and 'idiolect run' write such a folder"
    if near:
        hint = f"did you mean '{next(one for one in found if one.name == near[0])}'?"
    elif found:
        hint = f"folders with runs: {', '.join(map(str, found[:_NEAR]))}{', ...' if len(found) > _NEAR else ''}"
    raise StoreError(f"no runs in '{folder}'{f': {why}' if why else ''}; {hint}")


def _runs_in(folder: Path) -> list[Path]:
    """The databases of a folder, and of those in it."""
    try:
        return [one for one in (folder / DATABASE, *folder.glob(f"*/{DATABASE}")) if is_file(one)]
    except (OSError, ValueError):
        return []


def no_experiment(name: str, command: str = "run") -> ConfigError:
    """The error for an experiment file that is not there: what is near, or the command that is meant.

    command: what reads it; `federate` and `hub init` also take packaged names.
    """
    packaged = sorted({key.partition(" ")[0] for key in experiments.names()})
    if command == "run" and name in packaged:
        return ConfigError(f"no such experiment file: {name}; '{name}' is packaged: idiolect reproduce {name}")
    path = Path(name)
    try:
        there = [str(one) for one in path.parent.glob("*.toml")]
    except (OSError, ValueError):
        there = []
    near = get_close_matches(name, [*there, *(packaged if command != "run" else [])], n=1)
    return ConfigError(f"no such experiment file: {name}{f'; did you mean {near[0]!r}?' if near else ''}")


def inputs_of(experiment: Experiment) -> list[Path]:
    """The files of tables that an experiment reads."""
    return [Path(str(cell.data["path"])) for cell in experiment.cells if cell.data.get("path")]


def auto_model(spec: Mapping[str, Any], bench: Workbench) -> str:
    """Choose the default model: "linear" for regression, "mlr" for classification.

    Data that do not name their task are read to find it; the bench caches them.
    """
    task = sources.task_of(str(spec["name"])) or bench.read(spec).task
    return "linear" if task == "regression" else START


def with_auto_model(experiment: Experiment, changed: Mapping[str, Any], bench: Workbench) -> Experiment:
    """The experiment of one cell with the default model of its data, as changed; of a model that is set, itself."""
    if not {"model", "model.name"}.isdisjoint(changed):
        return experiment
    cell = experiment.cells[0]
    chosen = cell.model_copy(update={"model": {**cell.model, "name": auto_model(cell.data, bench)}})
    return experiment.model_copy(update={"cells": (chosen,)})


def default_folder(experiment: Experiment, changed: dict[str, Any]) -> Path:
    """Choose the default folder of an experiment; each set of changed settings has its own."""
    settings = {key: value for key, value in changed.items() if key != "seeds"}
    name = experiment.name.replace("/", "-")
    return Path("runs") / (f"{name}-{digest(settings)[:6]}" if settings else name)


def division_of(spec: dict[str, Any], bench: Workbench) -> Callable[[int], FederatedData]:
    """A function that makes a source's division of a seed.

    A source with test, validation and split_seed divides its rows itself, so that features are scaled by each
    division's training rows; the rows of any other one, or of a table with a split column, are divided anew.
    """
    source = sources.SOURCES[spec["name"]]
    known = signature(source).parameters
    if not {"test", "validation", "split_seed"} <= {*known}:
        return again(bench.read(spec))
    given = {**_DIVISION, **spec}
    if spec["name"] == "table":
        given.setdefault("minimum", smallest(TEST))
        first = bench.read({**given, "split_seed": 0})
        if dict(first.provenance).get("partition", {}).get("name") == "split-column":
            return again(first)
    seed = int(spec.get("split_seed", 0))
    return lambda draw: bench.read({**given, "split_seed": seed + draw})
