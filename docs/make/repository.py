"""Files of the repository that pages point to: reports, sources, tables. They become part of the site."""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = "repository"
"""Where a file that lies outside docs/ stands in the site: repository/results/README.md."""
SHOWN = {".py": "python", ".toml": "toml", ".yml": "yaml"}
"""Files that get a page with their text; the others are copied as they are."""

_LINK = re.compile(r"(\]\(|(?:src|href)=\")(?!https?:|mailto:|#)([^)\s#\"]+)(#[^)\s\"]*)?")
_FENCED = re.compile(r"^( *)(`{3,}).*?^\1\2[^\n]*$", re.DOTALL | re.MULTILINE)


def site_path(path: str) -> str:
    """The source path in the site of a file of the repository: docs/x.md is x.md, others lie under `FOLDER`."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    shown = f"{path}.md" if Path(path).suffix in SHOWN else path
    return f"{FOLDER}/{shown}"


def home(uri: str) -> str:
    """The file of the repository that a page of the site is made of; the inverse of `site_path`."""
    if not uri.startswith(f"{FOLDER}/"):
        return f"docs/{uri}"
    path = uri.removeprefix(f"{FOLDER}/")
    return path.removesuffix(".md") if Path(path.removesuffix(".md")).suffix in SHOWN else path


def links(text: str, path: str) -> set[str]:
    """The files of the repository that a page at `path` points to, outside of its code."""
    prose = _FENCED.sub("", text)
    found = {posixpath.normpath(posixpath.join(posixpath.dirname(path), m[2])) for m in _LINK.finditer(prose)}
    return {one for one in found if (ROOT / one).is_file()}


def relinked(text: str, uri: str, known: set[str]) -> str:
    """The text of a page with its links to files of the repository as the site has them. known: paths in the site."""
    path = home(uri)

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[2]))
        there = site_path(target)
        if there not in known or not (ROOT / target).is_file():
            return found[0]
        return f"{found[1]}{posixpath.relpath(there, posixpath.dirname(uri) or '.')}{found[3] or ''}"

    pieces = re.split(r"(^ *`{3,}.*?^ *`{3,}[^\n]*$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(piece if piece.lstrip().startswith("```") else _LINK.sub(link, piece) for piece in pieces)


def pointed_to(pages: dict[str, str]) -> dict[str, str | Path]:
    """All that the pages, and what they point to in turn, need: path in the site -> text of a page, or a file.

    pages: text by path in the repository, of every page that the site has already.
    """
    made: dict[str, str | Path] = {}
    waiting = sorted(set().union(*(links(text, path) for path, text in pages.items())))
    while waiting:
        path = waiting.pop()
        place, file = site_path(path), ROOT / path
        if path in pages or place in made or path.startswith("docs/"):
            continue
        if file.suffix == ".md":
            text = file.read_text()
            made[place] = f"---\nsearch:\n  exclude: true\n---\n{text}" if path != "results/README.md" else text
            waiting += sorted(links(text, path))
        elif file.suffix in SHOWN:
            made[place] = source_page(path, file.read_text(), SHOWN[file.suffix])
        else:
            made[place] = file
    return made


def source_page(path: str, text: str, language: str) -> str:
    """A page that shows a file."""
    fence = "`" * max(3, *(len(ticks) + 1 for ticks in re.findall(r"`{3,}", text)), 3)
    return f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"
