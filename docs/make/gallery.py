"""The live pages of the gallery: each folder of results/gallery as its report, at gallery/NAME.html of the site."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from idiolect.report.page import folders_page

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "results" / "gallery"
LINK = re.compile(r"\]\(\.\./results/gallery/(?P<name>[\w-]+)/report\.md\)")
"""A link of docs/gallery.md, which on a code host leads to the text of a report, and in the site to its page."""


def names() -> list[str]:
    """The folders that have a report."""
    return sorted(path.parent.name for path in FOLDER.glob("*/report.json"))


def pages() -> dict[str, str]:
    """HTML by path in the site."""
    with TemporaryDirectory() as temporary:
        made = {name: folders_page([FOLDER / name], Path(temporary) / f"{name}.html") for name in names()}
        return {f"gallery/{name}.html": page.read_text(encoding="utf-8") for name, page in made.items()}


def linked(text: str) -> str:
    """docs/gallery.md with links to the live pages."""
    return LINK.sub(lambda found: f"](gallery/{found['name']}.html)", text)
