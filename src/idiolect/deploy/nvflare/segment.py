"""How a job at the hub ended: one line in the run's folder, which the supervisor reads."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from idiolect.core.errors import ConfigError, DataError, DivergedError, StoreError
from idiolect.core.files import atomic_write
from idiolect.core.reading import json_of
from idiolect.deploy.nvflare.names import HUB_FOLDER

_FILE = "segment.json"
_FINAL = (ConfigError, DataError, DivergedError)  # the next job would end alike


@dataclass(frozen=True)
class End:
    """A job's end at the hub. error: one line, "" for the last round; final: another job would end alike."""

    job: str
    error: str
    final: bool


def hub_folder(argument: str) -> Path:
    """The folder of a run: the job's argument inside the folder that IDIOLECT_HUB names, which the hub's owner sets.

    Raises `ConfigError` if it lies elsewhere, or if neither says where.
    """
    base = os.environ.get(HUB_FOLDER, "")
    if not base and not Path(argument).is_absolute():
        raise ConfigError(f"the hub has no folder: start it with {HUB_FOLDER} set")
    if not base:
        return Path(argument)
    root = Path(base).resolve()
    folder = (root / argument).resolve()
    if not folder.is_relative_to(root):
        raise ConfigError(f"a job asked for a folder outside {HUB_FOLDER}: refused")
    return folder


def write_end(folder: Path, job: str, error: BaseException | None) -> None:
    """Say how a job ended. A folder that is not there, or a full disk, is no error: the job has ended anyway."""
    line = "" if error is None else (str(error).strip().splitlines() or [""])[0][:500] or type(error).__name__
    content = {"job": job, "error": line, "final": isinstance(error, _FINAL)}
    if not folder.is_dir():
        return
    try:
        with atomic_write(folder / _FILE) as file:
            file.write(json.dumps(content).encode())
    except StoreError:
        return


def read_end(folder: Path) -> End | None:
    """How the last job ended, if it said so."""
    try:
        content = json_of((folder / _FILE).read_bytes())
        return End(str(content["job"]), str(content["error"]), bool(content["final"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def obstacle(folder: Path) -> str:
    """Why a job could not even say how it ended: one line if nothing can be written in the run's folder, else ""."""
    probe = folder / ".probe"
    try:
        with atomic_write(probe) as file:
            file.write(b"\0" * 4096)
        probe.unlink(missing_ok=True)
    except (StoreError, OSError) as error:
        return f"{str(error).replace(str(probe), str(folder))}; make room there, or make it writable"
    return ""
