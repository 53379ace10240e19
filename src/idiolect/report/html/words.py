"""What a folder's report.md tells in words: how numbers were made, and each comparison's notes and settings."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from idiolect.report.html.leaks import is_finding
from idiolect.report.texts import CHOSEN

_FACT = re.compile(r"^- (protocol|source|made by): (.*)$", re.MULTILINE)
_SETTINGS = re.compile(r"<summary>Settings</summary>\n\n(.*?)\n\n</details>", re.DOTALL)


@dataclass(frozen=True)
class Section:
    """What is told of one comparison. settings: (label, text) pairs; chosen: how its rounds were chosen."""

    title: str = ""
    notes: tuple[str, ...] = ()
    audit: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    chosen: str = ""

    def method_of(self, title: str) -> str:
        """The name of the method with this label, as the settings tell it; "" if they do not."""
        told = next((text for label, text in self.settings if label == title), "")
        return told.partition(" (")[0]


@dataclass(frozen=True)
class Words:
    """What is known in words; empty texts for what is not. made_with: (label, text) pairs."""

    title: str
    source: str = ""
    protocol: str = ""
    command: str = ""
    made_with: tuple[tuple[str, str], ...] = ()
    sections: tuple[Section, ...] = ()

    def of(self, comparisons: int) -> Sequence[Section]:
        """The sections of so many comparisons, in their order; empty ones if the page has fewer."""
        enough = len(self.sections) >= comparisons
        return self.sections[:comparisons] if enough else [Section()] * comparisons


def told_by(report: Path, otherwise: str) -> Words:
    """Read a report.md that this package wrote. otherwise: the title where there is no such file."""
    try:
        page = report.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return Words(otherwise)
    heading = re.match(r"# (.+)", page)
    head, *blocks = page.split("\n## ")
    facts = dict(_FACT.findall(head))
    chosen = "; ".join(text for text in CHOSEN.values() if text in head)
    made = next((block for block in blocks if block.startswith("Made with\n")), "")
    return Words(
        _plain(heading.group(1)) if heading else otherwise,
        facts.get("source", ""),
        facts.get("protocol", ""),
        facts.get("made by", "").strip("`"),
        tuple(_pair(line) for line in _bullets(made)),
        tuple(_section(block, chosen) for block in blocks),
    )


def _section(block: str, chosen: str) -> Section:
    title, _, text = block.partition("\n")
    told = [line[4:].strip() for line in text.splitlines() if line.startswith("> - ")]
    settings = _SETTINGS.search(text)
    return Section(
        _plain(title),
        tuple(line for line in told if not is_finding(line)),
        tuple(line for line in told if is_finding(line)),
        tuple(_pair(line) for line in _bullets(settings.group(1))) if settings else (),
        chosen,
    )


def _bullets(text: str) -> list[str]:
    return [line[2:] for line in text.splitlines() if line.startswith("- ")]


def _pair(line: str) -> tuple[str, str]:
    """ "label: text" in two; a line without a label, or with one that holds a bracket, is a text."""
    label, colon, text = line.partition(": ")
    return (label, text) if colon and "(" not in label else ("", line)


def _plain(text: str) -> str:
    return re.sub(r"\\([\\|*<`])", r"\1", text).strip()
