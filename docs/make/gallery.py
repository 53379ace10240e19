"""The live pages of the gallery: each report that docs/gallery.md links to, as its page in the site."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from idiolect.report.page import folders_page

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(\.\./results/(?P<folder>[\w/-]+)/report\.md\)")
"""A link of docs/gallery.md, which on a code host leads to the text of a report, and in the site to its page."""


def folders() -> list[str]:
    """The folders below results/ that the page links to."""
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    return list(dict.fromkeys(found["folder"] for found in LINK.finditer(text)))


def place(folder: str) -> str:
    """The path in the site of a folder's page."""
    return f"gallery/{folder.removeprefix('gallery/').replace('/', '-')}.html"


def pages() -> dict[str, str]:
    """HTML by path in the site."""
    with TemporaryDirectory() as temporary:
        made = {
            one: folders_page([ROOT / "results" / one], Path(temporary) / "page.html").read_text()
            for one in folders()
        }
    return {place(folder): text for folder, text in made.items()}


def linked(text: str) -> str:
    """docs/gallery.md with links to the live pages."""
    return LINK.sub(lambda found: f"]({place(found['folder'])})", text)
