"""The folders that one hub's process serves: an entry in the hub's kit for each study.

A job names its study and not a folder, so that whoever may submit jobs cannot reach other folders of the machine.
"""

import re
from pathlib import Path

from idiolect.core.errors import ConfigError, StoreError, os_errors_as, require
from idiolect.core.rights import make_folder
from idiolect.deploy.nvflare.kits import Kit, read_json, write_json

_FOLDER = "studies"
_STUDY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def register_folder(kit: Kit) -> Path:
    """The folder of the entries, inside the hub's kit."""
    return kit.folder / _FOLDER


def register(kit: Kit, study: str, folder: Path) -> None:
    """Let the hub's process work for a study in this folder.

    Raises `ConfigError` if another folder that is still there has the same study: a copy of it would mix up the runs.
    """
    require(_STUDY.fullmatch(study) is not None, f"'{study}' is no id of a study")
    entries = register_folder(kit)
    with os_errors_as(f"cannot make {entries}"):
        make_folder(entries)
    entry = entries / f"{study}.json"
    other = Path(_entered(entry)) if entry.is_file() else folder
    if other.is_dir() and other.resolve() != folder.resolve():
        raise ConfigError(
            f"study '{study}' is in '{other}' already, and '{folder}' is a copy of it: make a new study with "
            f"'idiolect hub init', or remove {entry} to continue in the copy"
        )
    write_json(entry, {"folder": str(folder.resolve())})


def registered(entries: Path, study: str) -> Path | None:
    """The folder of a study, by its entry; None if it has none. Raises `StoreError` if that is damaged."""
    if _STUDY.fullmatch(study) is None:
        return None
    entry = entries / f"{study}.json"
    return Path(_entered(entry)) if entry.is_file() else None


def _entered(entry: Path) -> str:
    content = read_json(entry)
    if not isinstance(content, dict) or not isinstance(content.get("folder"), str):
        raise StoreError(f"{entry} names no folder; remove it, and 'idiolect hub run' writes it again")
    return content["folder"]
