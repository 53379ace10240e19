"""The audit of a hub's folder for a data protection officer: who took part when, and what was sent, byte by byte.

The hub's record of what it received is compared with the sites' records of what they sent, as far as these are handed
over. Both have the hashes of the same bytes, so nobody needs the messages.
"""

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from idiolect.core.errors import StoreError, os_errors_as, require
from idiolect.core.files import json_of
from idiolect.core.rights import make_folder
from idiolect.deploy.events import FILE as EVENTS
from idiolect.deploy.hub.config import FILE as HUB_FILE
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.journal import FORGOTTEN, PARTICIPATION, Participation
from idiolect.deploy.hub.received import FILE as RECEIVED
from idiolect.deploy.hub.received import GREETINGS, Received, greetings_of
from idiolect.deploy.hub.revoked import FILE as REVOKED
from idiolect.deploy.hub.revoked import revocations
from idiolect.deploy.messages import digest_of_values, lines_of
from idiolect.deploy.site.approvals import FILE as APPROVALS
from idiolect.deploy.site.outbox import Outbox

HUB_FILES = (
    *(HUB_FILE, "study.json", PARTICIPATION, FORGOTTEN, RECEIVED, GREETINGS, REVOKED),
    *("schema.json", "schema-notes.txt"),
)
"""The hub's files that an audit copies; the logs of events are copied, too."""
SENT = "sent.jsonl"
HUBS = ("server", "hub")
"""The hub's names in a site's log."""

Key = tuple[int, int, str]
"""(job, call, task)"""


@dataclass(frozen=True)
class Difference:
    """A message in which hub and site differ. kind: "not received", "not sent" or "other content"."""

    site: str
    kind: str
    line: str


@dataclass
class SiteAudit:
    """One site. first, last: the times of the first and the last round that it answered; handed: its log is here.

    sent: task -> (messages, bytes) by its own log; received: the same by the hub's; peers: neighbour -> the same.
    vectors: names, types and shapes of what it sent in rounds; terms: hash -> terms that the hub asked with.
    """

    first: str = ""
    last: str = ""
    rounds: int = 0
    missing: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    handed: bool = False
    sent: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    received: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    peers: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    vectors: set[str] = field(default_factory=set[str])
    terms: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    equal: int = 0


@dataclass
class Audit:
    """All that an audit found.

    study: the content of study.json, None without one; events: refusals and alike; forgotten: (site, run, time) ->
    the rounds that were taken back to forget the site.
    """

    config: HubConfig
    study: dict[str, Any] | None
    sites: dict[str, SiteAudit]
    differences: list[Difference]
    revoked: list[dict[str, str]]
    events: list[dict[str, Any]]
    versions: dict[str, str]
    rounds: dict[str, int]
    first: str
    last: str
    approvals: dict[str, list[str]]
    forgotten: dict[tuple[str, str, str], int]


def audit_of(folder: Path, logs: Path | None) -> Audit:
    """Read a hub's folder and the sites' logs.

    Args:
        folder: the hub's.
        logs: holds SITE/sent.jsonl, or SITE.jsonl, for each site that has handed over its log; None: none has.

    Raises:
        ConfigError: if there is no hub, or no log in `logs`.
        StoreError: if a file cannot be read.
    """
    config = HubConfig.load(folder)
    sites = {site: SiteAudit() for site in config.sites}
    rounds = list({(line["run"], line["round"]): line for line in _lines(folder / PARTICIPATION)}.values())
    for line in rounds:
        _count(sites, line)
    handed = {} if logs is None else site_logs(logs, config.sites)
    require(logs is None or bool(handed), f"{logs} holds no SITE/{SENT} of {', '.join(config.sites)}")
    received = list(Received(folder).lines())
    for line in received:
        site = sites.setdefault(line["site"], SiteAudit())
        if "error" not in line:
            _add(site.received, line["task"], int(line["bytes"]))
    differences: list[Difference] = []
    for name, path in handed.items():
        differences += _compared(name, sites[name], path, [line for line in received if line["site"] == name])
    events = [line for path in _event_files(folder) for line in lines_of(path)]
    notable = [line for line in events if line.get("level") in ("warning", "error") and line["event"] != "round"]
    reached = Counter(str(line["run"]) for line in rounds)
    times = sorted(str(line[key]) for line in rounds for key in ("start", "end") if line.get(key))
    versions = {site: said["version"] for site, said in greetings_of(folder).items()}
    study, revoked = _study(folder), revocations(folder)
    first, last = (times[0], times[-1]) if times else ("", "")
    approvals = {} if logs is None else {site: _approvals(logs / site, study) for site in handed}
    return Audit(
        config,
        study,
        sites,
        differences,
        revoked,
        notable,
        versions,
        dict(reached),
        first,
        last,
        approvals,
        _forgotten(folder / FORGOTTEN),
    )


def site_logs(logs: Path, sites: Iterable[str]) -> dict[str, Path]:
    """Site -> its log in a folder of logs that sites have handed over. Raises `ConfigError` without the folder."""
    require(logs.is_dir(), f"no such folder: {logs}")
    places = {site: (logs / site / SENT, logs / site / "idiolect" / SENT, logs / f"{site}.jsonl") for site in sites}
    return {site: path for site, paths in places.items() for path in paths if path.is_file()}


def copied_files(folder: Path, logs: Path | None, sites: Sequence[str]) -> dict[str, Path]:
    """Name in the audit's folder -> the file that is copied there."""
    found = {f"hub/{name}": folder / name for name in HUB_FILES if (folder / name).is_file()}
    found |= {f"hub/{path.name}": path for path in _event_files(folder)}
    if logs is not None:
        for site, path in site_logs(logs, sites).items():
            found[f"sites/{site}/{SENT}"] = path
            found |= {f"sites/{site}/{one.name}": one for one in _approval_files(logs / site)}
    return found


def copy_files(files: dict[str, Path], out: Path) -> None:
    """Copy files into a folder. Raises `StoreError` that names the file."""
    for name, path in files.items():
        target = out / name
        with os_errors_as(f"cannot copy {path} to {target}"):
            make_folder(target.parent)
            shutil.copyfile(path, target)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [line for line in Participation(path.parent).lines() if "answered" in line]


def _forgotten(path: Path) -> dict[tuple[str, str, str], int]:
    """Rounds that were taken back, also those that were played twice, as one."""
    found = dict[tuple[str, str, str], set[int]]()
    for line in lines_of(path):
        found.setdefault((str(line["forgotten"]), str(line["run"]), str(line["time"])), set()).add(int(line["round"]))
    return {key: len(rounds) for key, rounds in found.items()}


def _event_files(folder: Path) -> list[Path]:
    """The oldest first."""
    number = {path: path.suffix[1:] for path in folder.glob(f"{EVENTS}*")}
    return sorted(number, key=lambda path: -int(number[path] if number[path].isdigit() else 0))


def _count(sites: dict[str, SiteAudit], line: dict[str, Any]) -> None:
    for name in line.get("answered", ()):
        site = sites.setdefault(name, SiteAudit())
        site.rounds += 1
        end = str(line.get("end", ""))
        site.first, site.last = min(site.first or end, end), max(site.last, end)
    for name, why in line.get("missing", {}).items():
        sites.setdefault(name, SiteAudit()).missing[str(why)] += 1
    for name, why in line.get("refused", {}).items():
        sites.setdefault(name, SiteAudit()).refused[str(why)] += 1


def _add(totals: dict[str, tuple[int, int]], key: str, size: int) -> None:
    count, total = totals.get(key, (0, 0))
    totals[key] = count + 1, total + size


def _compared(name: str, site: SiteAudit, path: Path, received: list[dict[str, Any]]) -> list[Difference]:
    """Compare a site's log with the hub's; what is equal is counted."""
    site.handed = True
    outbox = Outbox(path)
    site.terms = outbox.terms()
    own: dict[Key, dict[str, Any]] = {}
    for line in outbox.lines():
        if line["to"] not in HUBS:
            _add(site.peers, str(line["to"]), int(line["bytes"]))
            continue
        _add(site.sent, str(line["task"]), int(line["bytes"]))
        if line["task"] == "round":
            site.vectors |= {f"{leaf} {kind}{shape}" for leaf, (kind, shape) in line["vectors"].items()}
        own[int(line.get("job", 0)), int(line.get("call", 0)), str(line["task"])] = line
    hub = {(int(line["job"]), int(line["call"]), str(line["task"])): line for line in received}
    found: list[Difference] = []
    for key in sorted(own.keys() | hub.keys()):
        kind, line = _difference(own.get(key), hub.get(key))
        if kind:
            found.append(Difference(name, kind, f"job {key[0]}, call {key[1]} ('{key[2]}'): {line}"))
        else:
            site.equal += 1
    return found


def _difference(sent: dict[str, Any] | None, got: dict[str, Any] | None) -> tuple[str, str]:
    """(kind, line) of how two records differ; ("", "") if they are equal."""
    failed = got is not None and "error" in got
    if sent is None:
        return ("", "") if failed else ("not sent", "the hub received a message that is not in the site's log")
    if got is None or (failed and not sent["header"].get("error")):
        why = "the hub has no record of it" if got is None else f"the hub: {got['error']}"
        return "not received", f"the site sent {int(sent['bytes']):,} bytes; {why}"
    if failed:
        return "", ""
    for name, own in (("sha256", sent["sha256"]), ("bytes", sent["bytes"])):
        if own != got[name]:
            return "other content", f"{name} {own} at the site, {got[name]} at the hub"
    if digest_of_values(sent["header"]) != got["header_sha256"]:
        return "other content", "the headers differ"
    return "", ""


def _study(folder: Path) -> dict[str, Any] | None:
    path = folder / "study.json"
    try:
        return dict(json_of(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise StoreError(f"cannot read {path}: {error}") from None


def _approval_files(folder: Path) -> list[Path]:
    """What a site has handed over of its approvals."""
    places = [folder / APPROVALS, folder / "idiolect" / APPROVALS]
    return [path for path in places if path.is_file()]


def _approvals(folder: Path, study: Mapping[str, Any] | None) -> list[str]:
    """A line for each study that a site has approved; a file that cannot be read is a line, too."""
    lines: list[str] = []
    for path in _approval_files(folder):
        try:
            for one in json_of(path.read_bytes())["approved"]:
                equal = study is not None and digest_of_values(one["study"]) == digest_of_values(study)
                same = "the hub's study" if equal else "another content than the hub's study"
                ended = f", revoked {one['revoked'][:19]}" if one.get("revoked") else ""
                lines.append(f"approved {one['study']['id']} at {one['time'][:19]} UTC{ended}: {same}")
        except (OSError, ValueError, KeyError, TypeError):
            lines.append(f"{path.name} cannot be read")
    return lines
