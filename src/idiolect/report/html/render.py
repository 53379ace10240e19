"""One self-contained HTML file of the page's data: style, scripts and charting library are in it, and plain HTML."""

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from idiolect.core.errors import StoreError, reason_of
from idiolect.core.files import write_text
from idiolect.report.html.payload import script_json


def plain_html(data: dict[str, Any]) -> str:
    """The page's data as HTML that needs no script. Charts, and clients one by one, are left out, and it says so."""
    parts = [
        f"<h1>{escape(data['title'])}</h1>",
        _conclusion(data),
        "<p>The charts and the clients one by one need scripts, which are off here.</p>",
        _list(data["missing"], "What is missing"),
        *(_cell(cell, several=len(data["cells"]) > 1) for cell in data["cells"]),
        _list([leak["text"] for leak in data["leaks"] or ()], "Leak audit"),
        _list(data["chosen"], "How the shown rounds were chosen"),
        _list(data["how_to_read"], "How to read the tables"),
        _list([f"{label}: {text}" if label else text for label, text in data["made_with"]], "Made with"),
        f"<h2>Command</h2><p><code>{escape(data['command'])}</code></p>" if data["command"] else "",
    ]
    return "\n".join(part for part in parts if part)


def _conclusion(of: dict[str, Any]) -> str:
    chips = "".join(f"<li>{escape(chip['title'])}. {escape(chip['text'])}</li>" for chip in of["chips"])
    return f"<p><strong>{escape(of['headline'])}</strong></p><p>{escape(of['numbers'])}</p><ul>{chips}</ul>"


def _list(lines: Sequence[str], heading: str) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<h2>{escape(heading)}</h2><ul>{items}</ul>" if lines else ""


def _cell(cell: dict[str, Any], *, several: bool) -> str:
    table = cell["table"]
    heads = [column["title"] for column in table["columns"]]
    rows = [[one["text"] for one in row["cells"]] for row in table["rows"]]
    return "\n".join(
        [
            f"<h2>{escape(cell['title'])}</h2>",
            _conclusion(cell) if several else "",
            _table(table["caption"], heads, rows),
            *(_table(small["title"], small["header"], small["rows"]) for small in cell["tables"]),
            _list(cell["notes"], "About these data"),
            _list([f"{label}: {text}" if label else text for label, text in cell["settings"]], "Settings"),
        ]
    )


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(one)}</td>' for one in row)}</tr>" for row in rows)
    caption = f"<caption>{escape(caption)}</caption>"
    return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


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
    write_text(path, page_html(data), shared=True)
    return path


def check_writable(path: Path) -> None:
    """Raise `StoreError` if there cannot be a file at this path, before anything is computed."""
    try:
        is_folder, has_parent = path.is_dir(), path.parent.is_dir()
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot write '{path}': {reason_of(error)}") from error
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
