"""Keep the folders small: `python -m results` stores what git hosts and readers need, once and compressed.

What the CSV files of a folder can draw is not stored: report.md names the command that draws it, and `make docs`
draws it for the site. The CSV files hold the scores of one round, so curves over rounds cannot be drawn from them.
Such pictures stay, as PNG files of at most 256 colours, or 64 where they are large: smaller than the figures as SVG.
"""

import csv
import gzip
import io
import re
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

from idiolect.core.files import plain_or_packed
from idiolect.report.view.as_json import REPORT
from idiolect.report.view.from_csv import CLIENTS, TABLE
from results.scores import HERE

BUDGET = 25_000_000
"""Bytes that all files of results/ may have together."""
LARGE = 128 * 1024
"""Bytes above which a clients.csv is stored compressed, without loss: pages of git hosts show only small tables."""
NOT_READ = 4 * 1024
"""Bytes above which a report.json is stored compressed: people read report.md."""
COLOURS, FEW = 256, 64
PICTURE = 70_000
"""Bytes above which a picture has only `FEW` colours; lines and bands look the same."""

_CLIENTS_PICTURE = re.compile(
    r"^!\[(?:.*: )?test score of every client\]\(figures/(.+)-clients\.png\)$", re.MULTILINE
)
_LINK = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
_STATEMENT = f"`{TABLE}` has every number unrounded, `{CLIENTS}` every client's."


def folders() -> list[Path]:
    """Every folder with the report of an experiment; a sweep's has no table of methods."""
    return sorted(table.parent for table in HERE.glob(f"*/*/{TABLE}") if (table.parent / "report.md").is_file())


def shown() -> set[Path]:
    """The pictures that the first pages show: those of the papers' README.md files."""
    pages = HERE.glob("*/README.md")
    return {(page.parent / link).resolve() for page in pages for link in _LINK.findall(page.read_text("utf-8"))}


def cell_ids(folder: Path) -> dict[str, str]:
    """The ids of a folder's cells, by the names that their figures' files have."""
    with (folder / TABLE).open(encoding="utf-8", newline="") as file:
        ids = dict.fromkeys(row["cell"] for row in csv.DictReader(file))
    return {re.sub(r"[^A-Za-z0-9._-]+", "-", cell).strip("-."): cell for cell in ids}


def compact(folder: Path, kept: Iterable[Path]) -> None:
    """Make one folder small; a second call changes nothing. kept: pictures that pages show and that stay."""
    text = (folder / "report.md").read_text(encoding="utf-8")
    compress(folder / CLIENTS, LARGE)
    compress(folder / REPORT, NOT_READ)
    kept = set(kept)
    for picture in sorted((folder / "figures").glob("*")):
        drawable = picture.suffix == ".svg" or picture.name.endswith("-clients.png")
        if drawable and picture.resolve() not in kept:
            picture.unlink()
        elif picture.suffix == ".png":
            reduce_colours(picture)
    (folder / "report.md").write_text(with_commands(text, folder), encoding="utf-8")


def compress(file: Path, most: int) -> None:
    """Replace a file of more than `most` bytes by NAME.gz. The same text always gives the same bytes."""
    if file.is_file() and file.stat().st_size > most:
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))
        file.unlink()


def reduce_colours(picture: Path) -> None:
    """Store a picture with a palette of few colours, where it has more and gets smaller by it."""
    for most in (COLOURS, FEW):
        if most == FEW and picture.stat().st_size <= PICTURE:
            return
        with Image.open(picture) as image:
            if image.mode == "P" and len(image.getcolors(COLOURS) or ()) <= most:
                continue
            buffer = io.BytesIO()
            reduced = image.convert("RGB").quantize(most, dither=Image.Dither.NONE)
            reduced.save(buffer, "PNG", optimize=True)
        if buffer.tell() < picture.stat().st_size:
            picture.write_bytes(buffer.getvalue())


def with_commands(text: str, folder: Path) -> str:
    """The text of a report with the command that draws each picture which is not stored."""
    ids, path = cell_ids(folder), folder.relative_to(HERE.parent).as_posix()
    file = plain_or_packed(folder / CLIENTS)
    name = CLIENTS if file is None else file.name

    def command(found: re.Match[str]) -> str:
        if (folder / "figures" / f"{found[1]}-clients.png").is_file():
            return found[0]
        cell = f" --cell {ids[found[1]]}" if len(ids) > 1 else ""
        command = f"idiolect figure {path} clients{cell} --format svg"
        return f"Every client's test score is in [{name}]({name}); this command draws it: `{command}`"

    text = _CLIENTS_PICTURE.sub(command, text).replace(f"[{CLIENTS}]({CLIENTS})", f"[{name}]({name})")
    return text.replace(_STATEMENT, _STATEMENT.replace(CLIENTS, name))


def size() -> int:
    """Bytes of all files of results/, without what Python keeps there."""
    return sum(file.stat().st_size for file in HERE.rglob("*") if file.is_file() and file.suffix != ".pyc")


def write() -> str:
    """Make every folder small; returns the size of all in a sentence."""
    kept = shown()
    for folder in folders():
        compact(folder, kept)
    return f"results/ has {size() / 1e6:.1f} MB, of at most {BUDGET / 1e6:.0f} MB."
