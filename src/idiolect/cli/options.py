"""Options that commands share, the parsing of their values into settings, and the check of their outputs."""

import ast
import os
from collections.abc import Collection, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from idiolect.core.errors import ConfigError, unknown
from idiolect.core.files import json_of
from idiolect.data.sets import registry as sources
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import Experiment, digest

WRITTEN = frozenset(
    {
        *("report.md", "report.html", "report.json", "table.csv", "clients.csv", "diagnostics.csv"),
        *("sweep.csv", "sweep.png", "sweep.svg", "chosen.toml", "own-samples.csv", "own-samples.png"),
        *("own-samples.svg", "advice.md", "advice.csv", "advice.json", "advice.png", "advice.svg", "question.json"),
        *("figures", "models", "race", "idiolect.sqlite", "progress.json", "participation.jsonl"),
    }
)
"""What commands write into the folder that --out names: files, and folders with files that may be replaced."""
FEDERATED = WRITTEN | {"hub.json", "hub-jobs.json", "federation", "sites"}
"""The same of a federation of real processes, which also removes folders."""


def check_output(
    out: Path,
    *inputs: Path,
    option: str = "--out",
    unread: Collection[str] = (),
    written: Collection[str] = WRITTEN,
) -> None:
    """Raise `ConfigError` if writing `out` would overwrite an input.

    out: a file, or a folder for results. inputs: files and folders that the command reads. unread: suffixes of files
    in an input folder that the command does not read, which may be written over. written: what is written into `out`,
    if it is a folder. Links are followed, and files are compared by what they are, not by their names.
    """
    for read in inputs:
        where = f"{option} {out} would overwrite '{read}', which the command reads"
        if _same(out, read):
            raise ConfigError(f"{where}; name another {'folder' if out.is_dir() else 'file'}")
        if _inside(out, read) is not None and out.is_file() and out.suffix.lower() not in unread:
            inside = f"{option} {out} would overwrite a file of '{read}', which the command reads"
            raise ConfigError(f"{inside}; name another file")
        below = _inside(read, out)
        if below is not None and below.parts[0].casefold() in written:
            raise ConfigError(f"{where}: results are written to '{below.parts[0]}' there; name another folder")


def inputs_of(experiment: Experiment) -> list[Path]:
    """The files of tables that an experiment reads."""
    return [Path(str(cell.data["path"])) for cell in experiment.cells if cell.data.get("path")]


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)
    except (OSError, ValueError):  # no path of a file, which is refused where it is read
        return False


def _inside(path: Path, folder: Path) -> Path | None:
    """Where a path lies below a folder; None if it does not."""
    try:
        if not folder.is_dir():
            return None
        # realpath, since Path.resolve raises in a loop of links
        real, top = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    except (OSError, ValueError):  # no path of a file, which is refused where it is read
        return None
    return real.relative_to(top) if real != top and real.is_relative_to(top) else None


class Saved(StrEnum):
    """The seeds whose client models are written as files."""

    first = "first"
    all = "all"
    none = "none"


_PYTHON = ("[", "(", "{", "'", '"', "True", "False", "None")
"""What a value begins with that may be written as Python does."""

Data = Annotated[str, typer.Option("--data", help="See 'idiolect list data', or a CSV, Parquet, JSON or Excel file.")]
ModelName = Annotated[str, typer.Option("--model", help="See 'idiolect list models'.")]
Rounds = Annotated[int, typer.Option("--rounds", help="Communication rounds.")]
Cohort = Annotated[float | None, typer.Option("--cohort", help="Clients per round (default: all).")]
SamplingKind = Annotated[str, typer.Option("--sampling", help="fixed or binomial.")]
Seeds = Annotated[int | None, typer.Option("--seeds", help="Number of seeds.  [default: 1]")]
Splits = Annotated[
    int | None,
    typer.Option("--splits", help="Number of seeds, each of which also draws its own training and test samples."),
]
EvalEvery = Annotated[int, typer.Option("--eval-every", help="Rounds between evaluations.")]
MetricName = Annotated[
    str,
    typer.Option(
        "--metric",
        help="The metric that chooses and is compared, then others, by commas; see 'idiolect list metrics'.",
    ),
]
ClientColumn = Annotated[str, typer.Option("--client", help="The client column of a table.")]
LabelColumn = Annotated[str, typer.Option("--label", help="The label column of a table.")]


def folder_path(text: str) -> Path:
    """Parse a folder. An empty text (an unset shell variable) is an error, not the current folder."""
    if not text.strip():
        raise typer.BadParameter("it must name a folder")
    return Path(text)


def file_path(text: str) -> Path:
    """Parse a file's path. An empty text (an unset shell variable) is an error."""
    if not text.strip():
        raise typer.BadParameter("it must name a file")
    return Path(text)


Out = Annotated[
    Path | None,
    typer.Option("--out", parser=folder_path, metavar="FOLDER", help="Folder for runs, tables, figures and models."),
]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, help="Processes at once (default: one per core).")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
DataDir = Annotated[
    str | None,
    typer.Option("--data-dir", help="Folder with one sub-folder per data set (or set IDIOLECT_DATA)."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting: rounds=50, data.partition=clean, model.l2=0.01, pfedme.rate=0.02."),
]
Models = Annotated[Saved, typer.Option("--save-models", help="Client models of the first seed, all seeds, or none.")]
MLflowTo = Annotated[
    str | None,
    typer.Option(
        "--mlflow", metavar="FOLDER", help="Log to MLflow as well: a folder, or an address such as http://host:5000."
    ),
]
TensorBoardTo = Annotated[
    str | None, typer.Option("--tensorboard", metavar="FOLDER", help="Write event files for TensorBoard as well.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Run without compilation: slow, but breakpoints see numbers.")]


def data_spec(data: str, client: str, label: str) -> tuple[dict[str, Any], str]:
    """Parse --data, a known source or a file: (specification, short name). Raises `ConfigError` if it is neither."""
    path = Path(data)
    if path.suffix.lower() in (".csv", ".parquet", ".pq", ".tsv", ".gz") or is_file(path):
        name = path.with_suffix("").stem if path.suffix.lower() == ".gz" else path.stem
        return {"name": "table", "path": os.path.abspath(path), "client": client, "label": label}, name
    if data not in sources.SOURCES or data == "table":
        error = unknown("data set", data, [s for s in sources.SOURCES if s != "table"])
        raise ConfigError(f"{error}; or give the path of a CSV, Parquet, JSON or Excel file")
    return {"name": data}, data


START = "mlr"
"""The model that stands for the default one until the data are read, which say the task."""


def is_file(path: Path) -> bool:
    """Whether a file is there; of a name that no file can have, too."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def auto_model(spec: Mapping[str, Any], bench: Workbench) -> str:
    """Choose the default model: "linear" for regression, "mlr" for classification.

    Data that do not name their task are read to find it; the bench caches them.
    """
    task = sources.task_of(spec["name"]) or bench.read(spec).task
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


def seeding(seeds: int | None, splits: int | None) -> dict[str, Any]:
    """Settings of --seeds and --splits. Raises `ConfigError` for both."""
    if seeds is not None and splits is not None:
        raise ConfigError(f"--seeds {seeds} and --splits {splits}: give one; --splits counts the seeds, too")
    if splits is not None:
        return {"seeds": splits, "new_splits": True}
    return {} if seeds is None else {"seeds": seeds}


def assignments(pairs: list[str] | None, metric: str = "") -> dict[str, Any]:
    """Parse --set key=value pairs and --metric. Raises `ConfigError` for a pair that is none.

    A value is JSON, else a list, table, text or truth value as Python writes it (['id'], True), else text.
    """
    settings: dict[str, Any] = {"metric": metric} if metric else {}
    for pair in pairs or []:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {pair}: write key=value")
        settings[key.strip()] = value_of(text.strip())
    return settings


def value_of(text: str) -> Any:
    """Read the value of a setting from its text."""
    for read in (json_of, ast.literal_eval if text.startswith(_PYTHON) else json_of):
        try:
            value = read(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return list(value) if isinstance(value, tuple) else value
    return text
