"""Options that commands share, the parsing of their values into settings, and the check of their outputs."""

import ast
import os
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from idiolect.core.errors import ConfigError
from idiolect.core.files import json_of

WRITTEN = frozenset(
    {
        *("report.md", "report.html", "report.json", "table.csv", "clients.csv", "diagnostics.csv"),
        *("sweep.csv", "sweep.png", "sweep.svg", "chosen.toml", "own-samples.csv", "own-samples.png"),
        *("own-samples.svg", "advice.md", "advice.csv", "advice.json", "advice.png", "advice.svg", "question.json"),
        *("figures", "models", "race", "idiolect.sqlite", "progress.json", "participation.jsonl"),
    }
)
"""What commands write into the folder that --out names: files, and folders with files that may be replaced."""
FEDERATED = WRITTEN | {"hub.json", "study.json", "hub-jobs.json", "federation", "sites"}
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


def rounds_of(text: str) -> int | str:
    """Parse a number of rounds, or the word auto."""
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter("it must be a whole number") from None


def rate_of(text: str) -> float | str:
    """Parse a learning rate, or one of the words auto and method."""
    if text in ("auto", "method"):
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter("it must be a number, auto or method") from None


MORE = "More options"
"""The part of a command's help for options that few need."""
Table = Annotated[
    str | None,
    typer.Argument(
        metavar="TABLE",
        help="Your table: a CSV, Parquet, JSON or Excel file. Or a data set's name, as --data.",
        show_default=False,
    ),
]
Data = Annotated[
    str | None,
    typer.Option("--data", metavar="NAME", help="A data set of 'idiolect list data', or a file, instead of TABLE."),
]
ModelName = Annotated[
    str,
    typer.Option(
        "--model", metavar="NAME", help="See 'idiolect list models'; auto: mlr for classes, linear for numbers."
    ),
]
Rounds = Annotated[int, typer.Option("--rounds", metavar="N", help="Communication rounds.")]
RoundsOrAuto = Annotated[
    Any,
    typer.Option(
        "--rounds",
        parser=rounds_of,
        metavar="N",
        help="Communication rounds; auto: until the validation loss stops falling, at most 200 (default on a table: "
        "auto, else 100).",
    ),
]
RateOrAuto = Annotated[
    Any,
    typer.Option(
        "--rate",
        parser=rate_of,
        metavar="RATE",
        help="Learning rate of methods that set none; auto: by the curvature of the training loss; method: each "
        "method's default (default on a table: auto, else method).",
    ),
]
Cohort = Annotated[
    float | None,
    typer.Option("--cohort", rich_help_panel=MORE, metavar="N", help="Clients per round (default: all)."),
]
SamplingKind = Annotated[
    str,
    typer.Option(
        "--sampling",
        rich_help_panel=MORE,
        metavar="KIND",
        help="fixed: cohorts of one size; binomial: each client independently.",
    ),
]
Seeds = Annotated[int | None, typer.Option("--seeds", metavar="N", help="Number of seeds (default: 1).")]
Splits = Annotated[
    int | None,
    typer.Option(
        "--splits",
        rich_help_panel=MORE,
        metavar="N",
        help="Number of seeds, each of which also draws its own training and test samples.",
    ),
]
EvalEvery = Annotated[
    int, typer.Option("--eval-every", rich_help_panel=MORE, metavar="N", help="Rounds between evaluations.")
]
MetricName = Annotated[
    str,
    typer.Option(
        "--metric",
        rich_help_panel=MORE,
        metavar="METRICS",
        help="The metric that chooses and is compared, then others, comma-separated; see 'idiolect list metrics'.",
    ),
]
ClientColumn = Annotated[str, typer.Option("--client", metavar="COLUMN", help="The client column of a table.")]
LabelColumn = Annotated[str, typer.Option("--label", metavar="COLUMN", help="The label column of a table.")]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="A cell, a method, or cell/method; may be given several times."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--out",
        parser=folder_path,
        metavar="FOLDER",
        help="Folder for runs, tables, figures and models (default: a new one in runs/).",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", rich_help_panel=MORE, min=1, metavar="N", help="Processes at once (default: one per core)."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
DataDir = Annotated[
    str | None,
    typer.Option(
        "--data-dir",
        rich_help_panel=MORE,
        metavar="FOLDER",
        help="Folder with one sub-folder per data set (or set IDIOLECT_DATA).",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting: rounds=50, data.partition=clean, model.l2=0.01, pfedme.rate=0.02.",
    ),
]
Models = Annotated[
    Saved,
    typer.Option(
        "--save-models",
        rich_help_panel=MORE,
        metavar="SEEDS",
        help="Seeds that keep their client models: first, all or none.",
    ),
]
MLflowTo = Annotated[
    str | None,
    typer.Option(
        "--mlflow",
        rich_help_panel=MORE,
        metavar="FOLDER",
        help="Log to MLflow as well: a folder, or an address such as http://host:5000.",
    ),
]
TensorBoardTo = Annotated[
    str | None,
    typer.Option(
        "--tensorboard", rich_help_panel=MORE, metavar="FOLDER", help="Write event files for TensorBoard as well."
    ),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", rich_help_panel=MORE, help="Run without compilation: slow, but breakpoints see numbers."),
]


def one_table(table: str | None, data: str | None) -> str:
    """The table or data set that a command reads: TABLE or --data. Raises typer's `BadParameter` for both or none."""
    given = [one for one in (table, data) if one is not None]
    if len(given) == 2:
        raise typer.BadParameter(f"give the data once: {given[0]} or --data {given[1]}, not both")
    if not given:
        raise typer.BadParameter("name your table, for example patients.csv, or a data set: --data synthetic")
    return given[0]


def names_in(text: str) -> list[str]:
    """The names in a comma-separated text."""
    return [name.strip() for name in text.split(",") if name.strip()]


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


_PYTHON = ("[", "(", "{", "'", '"', "True", "False", "None")
"""What a value begins with that may be written as Python does."""


def value_of(text: str) -> Any:
    """Read the value of a setting from its text."""
    for read in (json_of, ast.literal_eval if text.startswith(_PYTHON) else json_of):
        try:
            value = read(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return list(value) if isinstance(value, tuple) else value
    return text
