"""The list of sites whose certificates are revoked, in the hub's folder.

It has a hash, so that a list which was damaged or cut off is refused instead of read as a shorter one.
"""

import json
from pathlib import Path

from idiolect.core.errors import IdiolectError, StoreError, require
from idiolect.core.files import json_of, write_text
from idiolect.deploy.events import now
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.messages import digest_of_values

FILE = "revoked.json"
VERSION = 1


def revocations(folder: Path) -> list[dict[str, str]]:
    """The revoked sites: name, time, reason. Raises `StoreError` if the list was changed or cannot be read."""
    path = folder / FILE
    try:
        content = json_of(path.read_bytes())
        entries: list[dict[str, str]] = content["revoked"]
        same = content["version"] == VERSION and content["sha256"] == digest_of_values(entries)
        names = [entry["name"] for entry in entries]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = getattr(error, "strerror", None) or "it is no list of revoked sites"
        raise StoreError(f"cannot read {path}: {reason}; restore it from a backup") from None
    if not same or not all(names):
        raise StoreError(f"{path} does not match its hash: it was changed by hand; restore it from a backup")
    return entries


def revoked_names(folder: Path) -> frozenset[str]:
    """The names of the revoked sites. Raises as `revocations`."""
    return frozenset(entry["name"] for entry in revocations(folder))


def revoke(folder: Path, site: str, reason: str = "") -> bool:
    """Add a site to the hub's list; False if it was on it. Its name cannot come back, also with a new certificate.

    Raises `ConfigError` for a site that the hub does not know, `StoreError` if the list cannot be read or written.
    """
    config = HubConfig.load(folder)
    require(site in config.sites, f"there is no site '{site}'; the federation has {', '.join(config.sites)}")
    entries = revocations(folder)
    if site in {entry["name"] for entry in entries}:
        return False
    entries = [*entries, {"name": site, "time": now(), "reason": reason}]
    content = {"version": VERSION, "revoked": entries, "sha256": digest_of_values(entries)}
    write_text(folder / FILE, json.dumps(content, indent=1))
    return True


def refusals(folder: Path) -> dict[str, str]:
    """Site -> why it is not called. A list that cannot be read raises: nobody is called then."""
    return {entry["name"]: f"its certificate was revoked on {entry['time'][:10]}" for entry in revocations(folder)}


def is_revoked(folder: Path, site: str) -> bool:
    """Whether a site is on the list, False for a list that cannot be read: for onlookers only."""
    try:
        return site in revoked_names(folder)
    except IdiolectError:
        return False
