"""The page "Four hospitals": every command runs in order, on machines of their own, and prints what the page shows."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.hosts import ROOT, Host, hosts, why_not

PAGE = ROOT / "docs" / "four-hospitals.md"
FILES = ROOT / "docs" / "four-hospitals"
SITES = ("north", "south", "east", "west")
KEEPS = ", keeps running"

_BLOCK = re.compile(
    r'(?P<why><!-- not run: [^\n]+ -->\n)?^```(?P<language>sh|text) title="(?P<title>[^"]+)"\n(?P<text>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
_VARIES = (
    (r"\b\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d)?(\.\d+)?(\+00:00|Z)?", "TIME"),
    (r"\b([0-9A-F]{2}:){10,}[0-9A-F]{2}", "FINGERPRINT"),
    (r"\bhospitals-[0-9a-f]{8}\b", "STUDY"),
    (r"\b[0-9a-f]{12,64}\b", "HASH"),
    (r"[\d,.]+ (MB|GB|s|days)\b", r"N \1"),
)
"""What differs from run to run: times, keys, identities, and what the machine has."""


@dataclass(frozen=True)
class Step:
    """A block of the page. machines: where it runs; shows: what a run of it prints, for the block of a text."""

    language: str
    title: str
    text: str

    @property
    def machines(self) -> tuple[str, ...]:
        name = re.split(r",| prints", self.title)[0]
        return SITES if name == "each site" else (name,)


def steps(page: str) -> Iterator[Step]:
    """The blocks with a machine, in order, without those that are not run."""
    for found in _BLOCK.finditer(page):
        if not found["why"]:
            yield Step(found["language"], found["title"], found["text"])


def alike(line: str) -> str:
    """A line without what differs from run to run."""
    for pattern, word in _VARIES:
        line = re.sub(pattern, word, line)
    return " ".join(line.split())


def missing(shown: str, printed: str) -> str:
    """The first line that the page shows and the command has not printed, in this order; empty if none.

    A line `...` stands for any lines. Without it the lines follow each other.
    """
    lines, at, free = [alike(line) for line in printed.splitlines() if line.strip()], 0, False
    for line in shown.splitlines():
        if line.strip() == "...":
            free = True
            continue
        if not line.strip():
            continue
        wanted = alike(line)
        where = [index for index in range(at, len(lines) if free else at + 1) if index < len(lines) and lines[index] == wanted]
        if not where:
            return line
        at, free = where[0] + 1, False
    return ""
