"""One self-contained HTML file of the page's data: style, scripts and the charting library stand inside it."""

import re
from functools import cache
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from idiolect.core.errors import StoreError
from idiolect.core.files import atomic_write
from idiolect.report.html.numbers import script_json
from idiolect.report.html.plain import plain_html

PAGE = "report.html"
PLACES = ("<!--TITLE-->", "/*STYLE*/", "/*SCRIPT*/", "/*DATA*/", "<!--NOSCRIPT-->")


def page_html(data: dict[str, Any]) -> str:
    """The whole page. data: as `payload.payload_of` makes it; no text of it is read as HTML or as a script."""
    style, script, template = _assets()
    values = {
        "<!--TITLE-->": _said(escape(data["title"])),
        "/*STYLE*/": style,
        "/*SCRIPT*/": script,
        "/*DATA*/": script_json(data),
        "<!--NOSCRIPT-->": _said(plain_html(data)),
    }
    # In one pass: a name that reads as a place is a name.
    return re.sub("|".join(map(re.escape, PLACES)), lambda found: values[found.group()], template)


def write_page(data: dict[str, Any], path: Path) -> Path:
    """Write the page; its folder must be there. Raises `StoreError` if it cannot be written."""
    check_writable(path)
    with atomic_write(path, shared=True) as file:
        file.write(page_html(data).encode())
    return path


def check_writable(path: Path) -> None:
    """Raise `StoreError` if there cannot be a file at this path, before anything is computed."""
    try:
        is_folder, has_parent = path.is_dir(), path.parent.is_dir()
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot write '{path}': {getattr(error, 'strerror', None) or error}") from error
    if is_folder:
        raise StoreError(f"cannot write '{path}': it is a folder; name a file with -o")
    if not has_parent:
        raise StoreError(f"cannot write '{path}': there is no folder '{path.parent}'; make it first")


def _said(text: str) -> str:
    """A text that UTF-8 can express: HTML has no NUL and no half of a character."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


@cache
def _assets() -> tuple[str, str, str]:
    """(style, script, template), joined in the order of order.txt."""
    folder = files("idiolect.report.html") / "assets"
    names = _read(folder / "order.txt").split()
    template = _read(folder / "page.html")
    style, script = (
        "\n".join(_read(folder / name) for name in names if name.endswith(ending)) for ending in (".css", ".js")
    )
    return style, script, template


def _read(file: Traversable) -> str:
    return file.read_text(encoding="utf-8")
