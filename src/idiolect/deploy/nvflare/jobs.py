"""A job: three JSON files that name classes and carry no code.

How it ended is one line in the run's folder, which the supervisor reads. Old jobs leave folders at a site.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idiolect.core.errors import ConfigError, DataError, DivergedError, StoreError, os_errors_as, require
from idiolect.core.files import atomic_write, json_of, write_text
from idiolect.core.rights import make_folder
from idiolect.deploy.nvflare.kits import CONTROLLER, EXECUTOR, HUB, HUB_FOLDER, SITE, Kit, require_kind, write_json
from idiolect.deploy.nvflare.register import registered

_FILE = "segment.json"
_FINAL = (ConfigError, DataError, DivergedError)  # the next job would end alike


@dataclass(frozen=True)
class End:
    """A job's end at the hub. error: one line, "" for the last round; final: another job would end alike."""

    job: str
    error: str
    final: bool


def hub_folder(argument: str) -> Path:
    """The folder of a run. The hub's owner sets IDIOLECT_HUB: to the entries of the studies, of which the job's
    argument names one, or to a folder in which the argument lies.

    Raises `ConfigError` if it lies elsewhere, or if neither says where.
    """
    base = os.environ.get(HUB_FOLDER, "")
    if not base and not Path(argument).is_absolute():
        raise ConfigError(f"the hub has no folder: start it with {HUB_FOLDER} set")
    if not base:
        return Path(argument)
    root = Path(base).resolve()
    known = registered(root, argument)
    if known is not None:
        return known
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
        write_text(folder / _FILE, json.dumps(content))
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


_JOB = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # the engine names a job's folder by a UUID


def write_job(
    folder: Path, name: str, hub_arguments: Mapping[str, Any], min_clients: int, sync_seconds: float = 60.0
) -> Path:
    """Write a job to submit and return its folder, `folder`/`name`.

    hub_arguments: of `HubRole`: folder, run; min_clients: sites without which it does not start; sync_seconds: how
    long the sites' workers may take to start. Raises `ConfigError`, `StoreError`.
    """
    require(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) is not None, f"'{name}' is no name of a job")
    require(min_clients >= 1, f"min_clients is {min_clients}: a job needs a site")
    job = Path(folder) / name
    config = job / "app" / "config"
    with os_errors_as(f"cannot write {config}"):
        shutil.rmtree(job, ignore_errors=True)
        make_folder(config)
    filters = {"task_data_filters": [], "task_result_filters": []}
    meta = {"name": name, "resource_spec": {}, "min_clients": min_clients, "deploy_map": {"app": ["@ALL"]}}
    controller = {"server_obj_id": "hub", "sync_task_timeout": sync_seconds}
    server = {
        "format_version": 2,
        "workflows": [{"id": "controller", "path": CONTROLLER, "args": controller}],
        "components": [{"id": "hub", "path": HUB, "args": dict(hub_arguments)}],
        **filters,
    }
    client = {
        "format_version": 2,
        "executors": [{"tasks": ["*"], "executor": {"path": EXECUTOR, "args": {"client_obj_id": "site"}}}],
        "components": [{"id": "site", "path": SITE, "args": {}}],
        **filters,
    }
    write_json(job / "meta.json", meta)
    write_json(config / "config_fed_server.json", server)
    write_json(config / "config_fed_client.json", client)
    return job


def clean_jobs(kit: Kit, keep: int = 3) -> int:
    """Remove the folders of finished jobs at a site or hub but the `keep` newest, and say how many; 160 KB each.

    Nothing else in the kit is touched. A folder that cannot be removed stays.
    """
    require_kind(kit, "server", "client")
    require(keep >= 1, "keep at least the newest job: it may be running")
    folders = [path for path in kit.folder.iterdir() if path.is_dir() and _JOB.fullmatch(path.name)]
    folders.sort(key=lambda path: path.stat().st_mtime)
    for path in folders[: max(len(folders) - keep, 0)]:
        shutil.rmtree(path, ignore_errors=True)
    return sum(not path.exists() for path in folders)
