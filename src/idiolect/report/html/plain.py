"""The page without its scripts: the sentences, the tables and the questions as plain HTML, every text escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def plain_html(data: dict[str, Any]) -> str:
    """The page's data as HTML that needs no script. Charts, and clients one by one, are left out, and it says so."""
    parts = [
        f"<h1>{escape(data['title'])}</h1>",
        _paragraphs(data["answer"]),
        "<p>The charts and the clients one by one need scripts, which are off here.</p>",
        *(f"<h2>{escape(question)}</h2><p>{escape(answer)}</p>" for question, answer in data["questions"]),
        _list(data["missing"], "What is missing"),
        *(_cell(cell, several=len(data["cells"]) > 1) for cell in data["cells"]),
        _list([leak["text"] for leak in data["leaks"] or ()], "Leak audit"),
        _list(data["chosen"], "How the shown rounds were chosen"),
        _list(data["how_to_read"], "How to read the tables"),
        _list([f"{label}: {text}" if label else text for label, text in data["made_with"]], "Made with"),
        f"<h2>Command</h2><p><code>{escape(data['command'])}</code></p>" if data["command"] else "",
    ]
    return "\n".join(part for part in parts if part)


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


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
            _paragraphs(cell["answer"]) if several else "",
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
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
