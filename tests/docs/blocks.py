"""The code of the pages: every fenced block, its language, and why it is not run where it is not."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")],
    key=lambda path: path.relative_to(ROOT).as_posix(),
)
LANGUAGES = {"python", "sh", "text", "toml", "yaml", "ini", "json", "latex", "bibtex", "equations"}

_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<why>[^\n]+) -->\n)?"
    r"(?P<ticks>`{3,})(?P<language>\w*)(?: title=[^\n]*)?\n(?P<text>.*?)^(?P=ticks)$",
    re.DOTALL | re.MULTILINE,
)
"""The title of a block of "Four hospitals" is the machine on which it runs."""


@dataclass(frozen=True)
class Block:
    """A fenced block. why: it is not run, by the comment before it; empty if it is run."""

    language: str
    text: str
    why: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = _BLOCK.finditer(page.read_text())
    return [Block(one["language"], one["text"], one["why"] or "") for one in found]


def name_of(page: Path) -> str:
    """docs/concepts/seeds.md -> concepts/seeds.md; README.md."""
    return page.relative_to(ROOT / "docs" if page.is_relative_to(ROOT / "docs") else ROOT).as_posix()


def commands(block: Block) -> list[list[str]]:
    """The commands of a shell block, each as its words; comments are left out, `a && b` are two."""
    found: list[list[str]] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words:
            end = words.index("&&") if "&&" in words else len(words)
            found.append(words[:end])
            words = words[end + 1 :]
    return found
