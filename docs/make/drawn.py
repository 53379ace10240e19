"""Figures that are not stored but drawn for the site: every client's score in the reports under results/."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from idiolect.report.kinds import Wanted, clients, opened
from idiolect.report.style import REPORT, write

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(
    r"^(?P<line>Every client's test score .*`idiolect figure (?P<folder>results/\S+) clients(?: --cell (?P<cell>.+))?"
    r" --format svg`)$",
    re.MULTILINE,
)


def drawn(text: str) -> tuple[str, dict[str, str]]:
    """A report's text with a picture after each command that draws one, and the pictures (SVG) by their paths.

    The paths are relative to the report. Each picture is what its command writes.
    """
    images: dict[str, str] = {}
    folders = {found["folder"] for found in COMMAND.finditer(text)}
    if not folders:
        return text, images
    (folder,) = folders
    with opened(ROOT / folder) as source, TemporaryDirectory() as temporary:

        def picture(found: re.Match[str]) -> str:
            made = clients(source, Wanted(cell=found["cell"] or ""))
            assert not isinstance(made.content, str)
            file, path = Path(temporary) / "clients.svg", f"figures/clients-{len(images) + 1}.svg"
            write(made.content, file, "svg", REPORT)
            images[path] = file.read_text(encoding="utf-8")
            return f"![Test score of every client]({path})\n\n{found['line']}"

        text = COMMAND.sub(picture, text)
    return text, images
