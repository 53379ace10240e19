"""Put a hub's list of revoked sites in force at the engine, which has a list of clients that may not connect.

The engine refuses the registration of a site on its list, and drops every message of one that was registered before:
also those of a running worker. The hub calls no revoked site either, see `hub.calls`.
"""

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from idiolect.core.errors import ConfigError
from idiolect.core.files import json_of
from idiolect.deploy.hub.revoked import revoked_names
from idiolect.deploy.nvflare.kits import Kit, write_json
from idiolect.deploy.nvflare.processes import running
from idiolect.deploy.nvflare.session import LostError, session

_STARTING = 30.0  # seconds for a hub's process to answer
ENGINE = "disabled_clients.json"
"""In the hub's kit; the engine reads it when it starts."""


def enforce(folder: Path, hub: Kit, lead: Kit | None = None) -> list[str]:
    """Put the list in force at the hub's engine, and return the names on it.

    Args:
        folder: the hub's.
        hub: its kit; the engine reads its list there when it starts.
        lead: the kit of who gives commands; with it a hub that runs drops the sites at once.

    Raises:
        StoreError: if a list cannot be read or written, or the hub that runs refuses the command.
    """
    names = sorted(revoked_names(folder))
    if not names:
        return []
    if running(hub) is not None:
        if lead is None:
            raise ConfigError("the hub runs: name the kit of the person who submits jobs with --admin")
        _drop(lead, names)
        return names
    write_json(hub.folder / ENGINE, {"disabled_clients": sorted({*names, *_disabled(hub)})})
    return names


def _drop(lead: Kit, names: Sequence[str]) -> None:
    """Let a hub that runs drop the sites; one that is starting gets some time."""
    end = time.monotonic() + _STARTING
    while True:
        try:
            with session(lead) as opened:
                for name in names:
                    opened.disable(name)
                return
        except LostError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def _disabled(hub: Kit) -> Sequence[str]:
    """Those on the engine's list already: its administrator may have put others there."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        content: dict[str, Any] = json_of((hub.folder / ENGINE).read_bytes())
        return [str(name) for name in content["disabled_clients"]]
    return []
