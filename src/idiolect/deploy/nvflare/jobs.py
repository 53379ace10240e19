"""A job: three JSON files that name classes and carry no code; and the folders that old jobs leave at a site."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from idiolect.core.errors import StoreError, require
from idiolect.core.rights import make_folder
from idiolect.deploy.nvflare.kits import Kit, require_kind, write_json
from idiolect.deploy.nvflare.names import CONTROLLER, EXECUTOR, HUB, SITE

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
    try:
        shutil.rmtree(job, ignore_errors=True)
        make_folder(config)
    except OSError as error:
        raise StoreError(f"cannot write {config}: {error.strerror or error}") from error
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
