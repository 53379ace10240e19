"""Refuse an output that would overwrite what the command reads."""

import os
from collections.abc import Collection
from pathlib import Path

from idiolect.core.errors import ConfigError
from idiolect.study.experiment import Experiment

WRITTEN = frozenset(
    {
        *("report.md", "report.html", "report.json", "table.csv", "clients.csv", "diagnostics.csv"),
        *("sweep.csv", "sweep.png", "sweep.svg", "chosen.toml", "own-samples.csv", "own-samples.png"),
        *("own-samples.svg", "advice.md", "advice.csv", "advice.json", "advice.png", "advice.svg", "question.json"),
        *("figures", "models", "race", "idiolect.sqlite", "progress.json", "participation.jsonl"),
    }
)
"""What commands write into the folder that --out names: files, and folders whose files may be replaced."""
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
