"""The state of a hub's folder: rounds, sites, traffic and certificates, for status, metrics and alerts.

The fields of `HubView.to_dict` are documented in `docs/operating-a-hub.md`; `VERSION` changes with their meaning.
"""

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from idiolect.core.errors import IdiolectError
from idiolect.core.files import json_of
from idiolect.deploy.events import Tail, now
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.journal import PARTICIPATION
from idiolect.deploy.hub.received import greetings_of, read_now
from idiolect.deploy.hub.revoked import is_revoked

VERSION = 1
WARN_DAYS = 30
"""Days before the end of a certificate from which on it is warned of."""


@dataclass
class SiteView:
    """A site. in_a_row: rounds without an answer since its last one; last: when it answered last, "" if never."""

    rounds: int = 0
    missing: int = 0
    refused: int = 0
    in_a_row: int = 0
    last: str = ""
    reason: str = ""
    seconds: float | None = None
    bytes_down: int = 0
    bytes_up: int = 0


@dataclass
class Ledger:
    """What the lines of `participation.jsonl` add up to. last: the newest line; done: run -> rounds done."""

    folder: Path
    sites: dict[str, SiteView] = field(default_factory=dict[str, SiteView])
    done: dict[str, int] = field(default_factory=dict[str, int])
    last: dict[str, Any] = field(default_factory=dict[str, Any])
    bytes_down: int = 0
    bytes_up: int = 0
    rolled_back: int = 0

    def __post_init__(self) -> None:
        self._tail, self._lock = Tail(self.folder / PARTICIPATION), threading.Lock()

    def read(self) -> list[dict[str, Any]]:
        """Add the lines that are new, and return them."""
        with self._lock:
            lines = [line for line in self._tail() if "run" in line and "round" in line]
            for line in lines:
                self._add(line)
            return lines

    def _add(self, line: Mapping[str, Any]) -> None:
        if "rollback" in line:  # the run continues from an earlier round, see `rounds`
            self.rolled_back += 1
            self.done[line["run"]] = int(line["rollback"])
            return
        self.last = dict(line)
        self.done[line["run"]] = int(line["round"]) + 1  # of a round that was repeated, the last line counts
        self.bytes_down += int(line.get("bytes_down", 0))
        self.bytes_up += int(line.get("bytes_up", 0))
        for site in line.get("answered", ()):
            view = self.sites.setdefault(site, SiteView())
            view.rounds, view.in_a_row, view.reason = view.rounds + 1, 0, ""
            view.last = str(line.get("end", ""))
        for site, why in line.get("missing", {}).items():
            view = self.sites.setdefault(site, SiteView())
            view.missing, view.in_a_row, view.reason = view.missing + 1, view.in_a_row + 1, str(why)
        for site in line.get("refused", {}):
            self.sites.setdefault(site, SiteView()).refused += 1
        for site, moved in line.get("sites", {}).items():
            view = self.sites.setdefault(site, SiteView())
            view.bytes_down += int(moved.get("bytes_down", 0))
            view.bytes_up += int(moved.get("bytes_up", 0))
            view.seconds = moved.get("seconds", view.seconds)


def days_left(expires: str | datetime, at: datetime | None = None) -> float | None:
    """Days until a time, as ISO text or as a time; None for a text that is no time."""
    try:
        end = expires if isinstance(expires, datetime) else datetime.fromisoformat(expires)
    except ValueError:
        return None
    end = end if end.tzinfo else end.replace(tzinfo=UTC)
    return (end - (at or datetime.now(UTC))).total_seconds() / 86400


def certificates(folder: Path, own: Mapping[str, datetime]) -> dict[str, dict[str, Any]]:
    """Who -> {expires, days, warn} of the hub's own kits, and of each site as it said at its last greeting.

    Sites that have left are no concern of the hub.

    Args:
        folder: the hub's.
        own: "hub" and "lead" -> the end of their certificates, as far as they are known.
    """
    found: dict[str, str | datetime] = dict(own.items())
    left: tuple[str, ...] = ()
    with contextlib.suppress(IdiolectError):
        left = HubConfig.load(folder).left
    said = {site: of for site, of in greetings_of(folder).items() if site not in left}
    found |= {f"site {site}": of.get("expires", "") for site, of in said.items()}
    values: dict[str, dict[str, Any]] = {}
    for who, end in found.items():
        days = days_left(end)
        if days is not None:
            text = end if isinstance(end, str) else end.astimezone(UTC).isoformat(timespec="seconds")
            values[who] = {"expires": text, "days": round(days, 2), "warn": days < WARN_DAYS}
    return values


def status_of(
    folder: Path,
    config: HubConfig,
    total: int,
    ledger: Ledger,
    *,
    registered: Mapping[str, bool] | None = None,
    jobs: list[str] | None = None,
    own: Mapping[str, datetime] | None = None,
) -> dict[str, Any]:
    """The fields of `idiolect hub status --json`.

    Args:
        folder: the hub's.
        config: of the hub.
        total: rounds of all runs.
        ledger: of the folder; it is read here.
        registered: site -> whether it is connected; None if the hub was not asked.
        jobs: ids of the running jobs; None if the hub was not asked.
        own: see `certificates`.
    """
    ledger.read()
    sites = dict[str, Any]()
    for site in config.sites:
        view = ledger.sites.get(site, SiteView())
        sites[site] = {
            "registered": None if registered is None else registered.get(site, False),
            "left": site in config.left,
            "revoked": is_revoked(folder, site),
            "version": greetings_of(folder).get(site, {}).get("version"),
            "rounds": view.rounds,
            "missing": view.missing,
            "missing_in_a_row": view.in_a_row,
            "refused": view.refused,
            "reason": view.reason or None,
            "last_answer": view.last or None,
            "last_seconds": view.seconds,
            "bytes_down": view.bytes_down,
            "bytes_up": view.bytes_up,
        }
    last = ledger.last
    return {
        "version": VERSION,
        "time": now(),
        "study": _study(folder),
        "agreed": config.kind is not None,
        "sites": sites,
        "jobs": jobs,
        "now": read_now(folder),
        "rounds": {"done": sum(ledger.done.values()), "total": total, "runs": dict(ledger.done)},
        "last_round": {
            key: last.get(key)
            for key in ("run", "round", "start", "end", "seconds", "answered", "missing", "refused")
        }
        if last
        else None,
        "bytes": {"down": ledger.bytes_down, "up": ledger.bytes_up},
        "rolled_back": ledger.rolled_back,
        "certificates": certificates(folder, own or {}),
    }


def _study(folder: Path) -> str | None:
    """The study's id, if the folder has one."""
    try:
        return str(json_of((folder / "study.json").read_bytes())["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
