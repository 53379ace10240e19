"""A site and its studies: their ids, last rounds and refusals, and how the site leaves one.

This module imports no JAX, and only the site's own commands use it.
"""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from idiolect.core.errors import ConfigError, StoreError, reason_of, require
from idiolect.core.rights import make_folder
from idiolect.deploy.site.approvals import Approvals, revoke
from idiolect.deploy.site.outbox import Outbox
from idiolect.deploy.site.rows import accept_changes as accept_rows
from idiolect.deploy.site.state import FOLDER, MODELS, STAYS, Fence, has_left, mark_left, study_folder

WAIT = 30.0
"""Seconds that a command waits for a call in progress."""


@dataclass
class StudyHere:
    """A study at this site. runs: run -> rounds answered so far; times are those of the site's log (UTC).

    last: the newest round that was answered; refusal: the newest call that was refused, and why; None: there is none.
    """

    id: str
    left: bool = False
    runs: dict[str, int] = field(default_factory=dict[str, int])
    last: dict[str, Any] | None = None
    refusal: dict[str, Any] | None = None


def studies_of(site: Path) -> list[StudyHere]:
    """The studies of a site's folder, in the order in which they began. Raises `StoreError` if it cannot be read."""
    found = dict[str, StudyHere]()
    for line in Outbox(site / "sent.jsonl").lines():
        study = str(line.get("study", ""))
        if not study:
            continue
        here = found.setdefault(study, StudyHere(study))
        run, task, time = str(line.get("run", "")), str(line["task"]), str(line["time"])
        error = line["header"].get("error")
        if error:
            here.refusal = {"time": time, "task": task, "run": run, "error": str(error)}
        elif task == "round" and "round" in line:
            here.runs[run] = max(here.runs.get(run, 0), int(line["round"]) + 1)
            here.last = {"time": time, "run": run, "round": int(line["round"]) + 1}
    try:
        folders = sorted(path.name for path in (site / FOLDER).iterdir() if path.is_dir())
    except FileNotFoundError:
        folders = []
    except OSError as error:
        raise StoreError(f"cannot read '{site / FOLDER}': {reason_of(error)}") from None
    for name in folders:
        found.setdefault(name, StudyHere(name)).left = has_left(site / FOLDER / name)
    return [*found.values()]


def _known(site: Path, study: str) -> Path:
    """The folder of a study that has states here. Raises `ConfigError` for another one."""
    names = [here.id for here in studies_of(site)]
    require(study in names, f"this site has no study '{study}'; it has {', '.join(names) or 'none'}")
    return study_folder(site, study)


def accept_changes(site: Path, study: str) -> None:
    """Let the site join a study again with other training rows than before. Raises `ConfigError` if it never did."""
    folder = _known(site, study)
    with Fence(folder).hold(WAIT):
        changed = accept_rows(folder)
    require(changed, f"this site has not joined study '{study}', or the change has been accepted already")


def leave(site: Path, study: str, to: Path | None) -> list[str]:
    """Leave a study for good: move its private states and models to a new folder, or delete them (None).

    Its approval is revoked, and later calls of the study are refused. Returns the names of what was moved or deleted.
    Raises `ConfigError` for a study that is not here or a folder that is, `StoreError` if a file cannot be moved; the
    same call continues then.
    """
    folder = _known(site, study)
    if to is not None and to.exists() and (not to.is_dir() or any(to.iterdir())) and not has_left(folder):
        raise ConfigError(f"--out {to}: it is there already; name a new folder")
    with Fence(folder).hold(WAIT):
        known = Approvals.load(site).of(study)
        if known is not None and not known.revoked:
            revoke(site, study)
        try:
            mark_left(folder)
            moved = list[str]()
            for part, source in ((FOLDER, folder), (MODELS, site / MODELS / study)):
                inside = [path for path in source.iterdir() if path.name not in STAYS] if source.is_dir() else []
                for path in sorted(inside):
                    _take(path, None if to is None else to / part)
                    moved.append(f"{part}/{path.name}")
            shutil.rmtree(site / MODELS / study, ignore_errors=True)
        except (OSError, shutil.Error) as error:
            reason = reason_of(error)
            raise StoreError(f"cannot take what is in '{folder}': {reason}; repeat the command") from error
    return moved


def _take(path: Path, to: Path | None) -> None:
    if to is not None:
        shutil.move(path, make_folder(to) / path.name)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
