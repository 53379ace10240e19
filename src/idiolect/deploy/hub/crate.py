"""An audit as one folder: report.md and report.html in plain words, copies of the logs, and an RO-Crate.

RO-Crate (https://w3id.org/ro/crate/1.1) is a format for a folder that describes itself, in `ro-crate-metadata.json`.
"""

import hashlib
import html
import json
import shutil
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from idiolect.core.errors import StoreError, reason_of, require
from idiolect.core.files import write_text
from idiolect.core.rights import make_folder, restrict
from idiolect.deploy.events import now
from idiolect.deploy.hub.audit import Audit, SiteAudit, audit_of, copied_files, copy_files
from idiolect.deploy.messages import digest_of_values
from idiolect.deploy.terms import VERSION

LONGEST = 50
"""Lines of one list in the report, at most; all of them are in `differences.json` and the logs."""


@dataclass(frozen=True)
class Section:
    """A part of the report. head, rows: of its table; lines: of its list."""

    title: str
    text: str
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = field(default=())


def write_audit(folder: Path, out: Path, logs: Path | None = None) -> Audit:
    """Write the audit of a hub's folder into a new folder, complete or not at all.

    Args:
        folder: the hub's.
        out: a folder that does not exist, or is empty.
        logs: see `audit_of`.

    Raises:
        ConfigError: if the library is missing, `out` is in use, or `audit_of` raises it.
        StoreError: if something cannot be read or written.
    """
    require(find_spec("rocrate") is not None, "an audit needs: pip install 'idiolect[audit]'")
    empty = not out.exists() or (out.is_dir() and not any(out.iterdir()))
    require(empty, f"{out} is not empty: name a new folder with -o")
    audit = audit_of(folder, logs)
    scratch = out.with_name(f".{out.name}.tmp")
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        make_folder(scratch)
        copy_files(copied_files(folder, logs, audit.config.sites), scratch)
        found = [{"site": one.site, "kind": one.kind, "line": one.line} for one in audit.differences]
        write_text(scratch / "differences.json", json.dumps(found, indent=1))
        sections = report(audit)
        write_text(scratch / "report.md", markdown(sections))
        write_text(scratch / "report.html", page(sections))
        _describe(audit, scratch)
        restrict(scratch)
        if out.exists():
            out.rmdir()
        scratch.rename(out)
    except OSError as error:
        raise StoreError(f"cannot write {out}: {reason_of(error)}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return audit


def report(audit: Audit) -> list[Section]:
    """The sections of the report."""
    study = audit.study or {}
    name = str(study.get("id") or audit.config.experiment.get("name") or "study")
    handed = [site for site, one in audit.sites.items() if one.handed]
    bad = [one for one in audit.differences if one.kind != "not received"]
    verdict = _verdict(audit, handed, bool(bad))
    answered = sum(audit.rounds.values())
    when = f"from {_time(audit.first)} to {_time(audit.last)} UTC" if audit.first else "no round has been done"
    intro = (
        f"{len(audit.sites)} sites and a hub trained models together, {when}: {answered} rounds in "
        f"{len(audit.rounds)} runs. No message is a row. {verdict}"
    )
    return [
        Section(f"Audit of {name}", intro),
        _terms(audit),
        Section(
            "Who took part, and when",
            "A round counts for a site if the hub used its answer. participation.jsonl has the times of each.",
            ("site", "first answer", "last answer", "rounds", "missing", "refused", "state"),
            [
                (
                    site,
                    _time(one.first),
                    _time(one.last),
                    str(one.rounds),
                    str(sum(one.missing.values())),
                    str(sum(one.refused.values())),
                    _state(audit, site),
                )
                for site, one in audit.sites.items()
            ],
        ),
        Section(
            "Why sites were missing",
            "The number of rounds per reason.",
            lines=[
                f"{site}: {why} ({count})" for site, one in audit.sites.items() for why, count in one.missing.items()
            ],
        ),
        *_sent(audit, handed),
        Section(
            "Differences between the logs",
            "A message that a site sent too late is in its own log only. Other differences need an explanation.",
            lines=[f"{one.site}: {one.kind}: {one.line}" for one in audit.differences],
        ),
        Section(
            "Refusals and warnings",
            "Events of the hub's log with the levels warning and error.",
            lines=[
                f"{_time(str(line.get('time')))} {line.get('event')}: {line.get('text')}" for line in audit.events
            ],
        ),
        Section(
            "Revoked certificates",
            "The hub refuses these sites.",
            lines=[
                f"{one['name']}, {_time(one['time'])} UTC: {one['reason'] or 'no reason'}" for one in audit.revoked
            ],
        ),
        Section(
            "Forgotten sites",
            "The runs began again as if these sites had never joined. forgotten.jsonl has who took part before.",
            lines=[
                f"{site}, {_time(time)} UTC: {rounds} rounds of {run} were taken back"
                for (site, run, time), rounds in audit.forgotten.items()
            ],
        ),
        Section(
            "Versions",
            f"This audit was written by idiolect {VERSION} on {_time(now())} UTC.",
            lines=[f"{site}: idiolect {version}" for site, version in audit.versions.items()],
        ),
    ]


def _verdict(audit: Audit, handed: list[str], bad: bool) -> str:
    if not handed:
        return "No site has handed over its log, so what sites sent is known from the hub's record only."
    late = len(audit.differences)
    equal = sum(one.equal for one in audit.sites.values())
    rest = [site for site in audit.sites if site not in handed]
    absent = f" The logs of {', '.join(rest)} were not handed over." if rest else ""
    if bad:
        return f"The logs of hub and sites differ: see below. {equal:,} messages are equal in every byte.{absent}"
    lost = f" {late} messages that sites sent did not reach the hub in time." if late else ""
    return f"{equal:,} messages are equal in every byte in the logs of hub and sites.{lost}{absent}"


def _terms(audit: Audit) -> Section:
    study = audit.study
    experiment = digest_of_values(audit.config.experiment)
    lines = [f"experiment: sha256 {experiment}"]
    if study is not None:
        lines = [f"study {study.get('id')}: sha256 {digest_of_values(study)}", *lines]
        lines += [f"planned run: {run.get('run')}" for run in study.get("runs", ()) if isinstance(run, dict)]
    for site, one in audit.sites.items():
        for key, of in one.terms.items():
            asked: dict[str, Any] = of["terms"]
            lines.append(f"{site} was asked for {asked['run']} at {_time(str(of['time']))} UTC: terms sha256 {key}")
        lines += [f"{site}: {line}" for line in audit.approvals.get(site, ())]
    text = "The terms are the settings of each run: method, model, rounds. Equal hashes mean equal terms."
    return Section("Approved study and terms", text, lines=lines)


def _state(audit: Audit, site: str) -> str:
    words = ["revoked"] if any(one["name"] == site for one in audit.revoked) else []
    return ", ".join([*words, *(["left"] if site in audit.config.left else [])]) or "takes part"


def _sent(audit: Audit, handed: list[str]) -> list[Section]:
    rows = [row for site, one in audit.sites.items() for row in _site_rows(site, one)]
    text = (
        "Messages and bytes of vectors per task, by the site's own log and by the hub's record. Messages are models, "
        "changes of models, and sums. What they can reveal of rows is not measured here."
    )
    vectors = [f"{site}: {', '.join(sorted(audit.sites[site].vectors))}" for site in handed]
    peers = [
        f"{site} to {other}: {count} messages, {size:,} bytes"
        for site, one in audit.sites.items()
        for other, (count, size) in one.peers.items()
    ]
    head = ("site", "task", "messages sent", "bytes sent", "messages received", "bytes received")
    return [
        Section("What was sent to the hub", text, head, rows),
        Section("Vectors that were sent in rounds", "Names, types and shapes, by the sites' logs.", lines=vectors),
        Section("What sites sent to each other", "Only methods without a server do this.", lines=peers),
    ]


def _site_rows(site: str, one: SiteAudit) -> list[tuple[str, ...]]:
    rows = list[tuple[str, ...]]()
    for task in sorted({*one.sent, *one.received}):
        sent, got = one.sent.get(task), one.received.get(task, (0, 0))
        own = (str(sent[0]), f"{sent[1]:,}") if sent else ("0", "0") if one.handed else ("no log", "no log")
        rows.append((site, task, *own, str(got[0]), f"{got[1]:,}"))
    return rows


def _time(text: str) -> str:
    return text[:19].replace("T", " ") or "-"


def markdown(sections: Sequence[Section]) -> str:
    """The report as Markdown."""
    parts: list[str] = []
    for number, section in enumerate(sections):
        parts += [f"{'##' if number else '#'} {_plain(section.title)}", _plain(section.text)]
        if section.head:
            table = [section.head, ["---"] * len(section.head), *section.rows]
            parts.append("\n".join(f"| {' | '.join(_plain(cell) for cell in row)} |" for row in table))
        if section.lines or not section.head:
            shown = [f"- {_plain(line)}" for line in _short(section.lines)]
            parts += ["\n".join(shown) or "- none"] if number else []
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """Text that is no markup: what sites say is shown as it is."""
    escaped = "".join(f"\\{c}" if c in "\\`*_[]<>|#" else c for c in " ".join(text.split()))
    return escaped


def page(sections: Sequence[Section]) -> str:
    """The report as one HTML page without scripts."""
    parts: list[str] = []
    for number, section in enumerate(sections):
        level = "h2" if number else "h1"
        parts += [f"<{level}>{html.escape(section.title)}</{level}>", f"<p>{html.escape(section.text)}</p>"]
        if section.head:
            cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in section.head)
            rows = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in section.rows]
            parts.append(f"<table><tr>{cells}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>")
        if number and (section.lines or not section.head):
            items = [f"<li>{html.escape(line)}</li>" for line in _short(section.lines) or ["none"]]
            parts.append(f"<ul>{''.join(items)}</ul>")
    title = html.escape(sections[0].title)
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _short(lines: Sequence[str]) -> list[str]:
    rest = len(lines) - LONGEST
    return [*lines[:LONGEST], *([f"and {rest} more"] if rest > 0 else [])]


_STYLE = (
    "body{font:16px sans-serif;max-width:70em;margin:2em auto;padding:0 1em}td,th{padding:.2em .8em;text-align:left}"
)
_RIGHTS = "The data protection officer of the study decides who may read this folder."
_ABOUT = {
    "report.md": ("The report in plain words", "text/markdown"),
    "report.html": ("The report as a page", "text/html"),
    "differences.json": ("Messages in which the logs of hub and sites differ", "application/json"),
    "hub/hub.json": ("The hub's settings and experiment", "application/json"),
    "hub/study.json": ("The study that sites approve", "application/json"),
    "hub/participation.jsonl": (
        "A line for each round: who took part, when, and why others did not",
        "application/json",
    ),
    "hub/received.jsonl": ("A line for each message that the hub received, with its hash", "application/json"),
}


def _describe(audit: Audit, out: Path) -> None:
    """Write ro-crate-metadata.json for the files in a folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from rocrate.model.contextentity import ContextEntity
        from rocrate.rocrate import ROCrate

        study = str((audit.study or {}).get("id") or audit.config.experiment.get("name") or "study")
        crate: Any = ROCrate(version="1.1")
        crate.name = f"Audit of the federated study {study}"
        crate.description = "Who took part, what was sent, the terms, and refusals; the messages are not included."
        crate.datePublished = datetime.now(UTC)
        rights = {"@type": "CreativeWork", "name": "Confidential", "description": _RIGHTS}
        crate.license = crate.add(ContextEntity(crate, "#rights", properties=rights))
        hub = {"@type": "Organization", "name": f"The hub of {study}"}
        crate.creator = crate.publisher = crate.add(ContextEntity(crate, "#hub", properties=hub))
        crate.root_dataset["author"] = crate.publisher
        software = {"@type": "SoftwareApplication", "name": "idiolect", "version": VERSION}
        tool: Any = crate.add(ContextEntity(crate, "#idiolect", properties=software))
        sites: list[Any] = [
            crate.add(ContextEntity(crate, f"#site-{site}", properties={"@type": "Organization", "name": site}))
            for site in audit.sites
        ]
        files: list[Any] = []
        for path in sorted(path for path in out.rglob("*") if path.is_file()):
            name = path.relative_to(out).as_posix()
            title, kind = _ABOUT.get(name, (name, "application/json" if "json" in name else "text/plain"))
            content = path.read_bytes()
            about = {"name": title, "encodingFormat": kind, "contentSize": str(len(content))}
            about["sha256"] = hashlib.sha256(content).hexdigest()
            files.append(crate.add_file(path, dest_path=name, properties=about))
        action = {"@type": "CreateAction", "name": f"Training of {study}", "description": "See report.md."}
        action |= {"startTime": audit.first, "endTime": audit.last} if audit.first else {}
        done: Any = crate.add(ContextEntity(crate, "#training", properties=action))
        done["instrument"], done["participant"], done["result"] = tool, sites, files
        crate.root_dataset["mentions"] = done
        write_text(out / "ro-crate-metadata.json", json.dumps(crate.metadata.generate(), indent=1, default=str))
