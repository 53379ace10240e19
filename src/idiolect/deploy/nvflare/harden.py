"""What an administrator changes in a kit before it is used: no code but idiolect's, nothing outside its folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from idiolect.core.errors import StoreError
from idiolect.core.rights import make_folder, restrict
from idiolect.deploy.nvflare.kits import Kit, read_json, read_kit, require_kind, write_json
from idiolect.deploy.nvflare.names import ALLOWED

_RIGHTS = ("submit_job", "clone_job", "manage_job", "download_job", "view", "operate")
_READERS = ("lead", "project_admin")  # may read a job's log at the hub, which the template refuses to a lead


def harden(folder: Path) -> list[str]:
    """Harden the kit of a hub or a site; the names of the files that were changed, none if it was hardened before.

    A job may name idiolect's four classes and no other; nobody may ship code or run shell commands, a project
    administrator neither; a site's logs stay there, and only warnings are logged; stores lie inside the kit. Other
    users of the machine lose all rights in the kit. Raises `StoreError` that names the kit's file.
    """
    kit = read_kit(folder)
    require_kind(kit, "server", "client")
    changes: dict[str, Callable[[Kit, Any], None]] = {
        "resources.json": _resources,
        "authorization.json": _authorization,
        "log_config.json": _logs,
    }
    changed: list[str] = []
    for name, change in changes.items():
        path = kit.folder / "local" / name
        source = path if path.is_file() else path.with_name(f"{name}.default")
        content = read_json(source)
        try:
            change(kit, content)
        except (KeyError, TypeError, AttributeError):
            raise StoreError(f"{source} is not as nvflare 2.9 writes it; restore it or build the kit again") from None
        if write_json(path, content):
            changed.append(name)
    restrict(kit.folder)
    return changed


def allow_list_lines() -> list[str]:
    """What administrators who edit local/resources.json by hand write there: the classes that a job may name."""
    return ['"class_list_enforcement_mode": "enforce",', '"class_allow_list": [', *_listed(), "],"]


def _listed() -> list[str]:
    return [f'  "{name}"' + ("," if name != ALLOWED[-1] else "") for name in ALLOWED]


def _resources(kit: Kit, content: Any) -> None:
    store = kit.folder / "store"
    content["class_list_enforcement_mode"] = "enforce"
    content["class_allow_list"] = list(ALLOWED)
    for component in content["components"]:
        if component["id"] == "job_manager":
            component["args"]["uri_root"] = str(store / "jobs")
        elif component["id"] == "log_receiver":  # else what sites send is staged in the system's temporary folder
            component["args"]["dest_dir"] = _made(store / "logs")
    if kit.kind == "server":
        content["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"] = str(store / "snapshots")
    else:
        content["allow_log_streaming"] = False
        content["components"] = [c for c in content["components"] if c["id"] != "site_log_streamer"]


def _made(folder: Path) -> str:
    try:
        make_folder(folder)
    except OSError as error:
        raise StoreError(f"cannot make {folder}: {error.strerror or error}") from error
    return str(folder)


def _authorization(kit: Kit, content: Any) -> None:
    for name, role in content["permissions"].items():
        if isinstance(role, str):  # "any" includes shipped code
            role = dict.fromkeys(_RIGHTS, role)
        role |= {"byoc": "none", "shell_commands": "none"}
        if kit.kind == "server" and name in _READERS:
            role |= {"get_job_log": "any", "list_job": "any"}
        content["permissions"][name] = role


def _logs(_: Kit, content: Any) -> None:
    content["loggers"]["root"]["level"] = "WARNING"
    for handler in content["handlers"].values():
        if "maxBytes" in handler:
            handler |= {"maxBytes": 1_000_000, "backupCount": 2}
