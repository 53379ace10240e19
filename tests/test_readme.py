"""README.md and all pages: the links. What they show is run in docs/test_blocks.py."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_file_that_it_links_to_is_there():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)#\s]+)", text):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page}: {link}"
