"""README.md and all pages: the links. What they show is run in docs/test_blocks.py."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_file_that_it_links_to_is_there():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)#\s]+)", text):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page}: {link}"


README = (ROOT / "README.md").read_text(encoding="utf-8")
LONGEST_SENTENCE = 25
FIRST_SCREEN = 45
"""Lines that a reader sees before scrolling, pictures apart."""


def prose(text: str) -> list[str]:
    """The sentences of a page: without code, pictures, tables, and the addresses of links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^(\||#).*$", "", text, flags=re.MULTILINE).replace("*", "")
    blocks = re.split(r"\n\s*\n|\n- ", text)
    return [one for block in blocks for one in re.split(r"(?<=[.?!:])\s+", " ".join(block.split())) if one]


def test_no_sentence_is_long():
    assert [one for one in prose(README) if len(one.split()) > LONGEST_SENTENCE] == []


def test_it_is_short():
    assert len(README.splitlines()) <= 120


def test_five_questions_are_answered_where_a_stranger_looks():
    """What it is, for whom, how to install it and what one sees: on the first screen. What it does not do: below."""
    first = "\n".join(README.splitlines()[:FIRST_SCREEN])
    assert "personalized federated learning" in first  # what is it
    assert all(who in first for who in ("hospitals", "researchers"))  # is it for me
    assert "pip install idiolect" in first  # how do I install it
    assert re.search(r"!\[[^\]]+\]\(docs/figures/", first)  # what will I see
    assert "docs/gallery.md" in first
    assert "## What it does not do" in README  # and what it does not do
    below = README.split("## What it does not do")[1]
    for limit in ("differential privacy", "secure sum", "out of scope"):
        assert limit in below


def test_both_commands_are_named():
    assert "`make demo`" in README
    assert "`make test`" in README
