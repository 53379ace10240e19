"""The table of a comparison for Markdown, and for a terminal, where columns are left out before words are broken."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions
from rich.table import Table as RichTable
from rich.text import Text

from idiolect.report.comparison import HURT, WORDS, Table, table_of
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell

DISPENSABLE = ("client mean", *HURT, "difference", "worst 10 %")
LONGEST = 28  # characters; longer names are wrapped


@dataclass(frozen=True)
class TerminalTable:
    """A table that rich prints wide, else compact, else without its least important columns and with a note."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RichTable]:
        """Yield the widest form that fits, or the narrowest if none does."""
        forms = [rich_form(self.table)]
        dispensable = ("seconds", *self.table.others[::-1], *DISPENSABLE)
        forms += [rich_form(self.table, dispensable[:n], compact=True) for n in range(len(dispensable) + 1)]
        yield next((form for form, width in forms if width <= options.max_width), forms[-1][0])


def rich_table(results: Results, cell: Cell) -> TerminalTable:
    """Build the table of a cell, to be printed on a `rich` console."""
    return TerminalTable(table_of(results, cell))


def rich_form(table: Table, without: tuple[str, ...] = (), *, compact: bool = False) -> tuple[RichTable, int]:
    """Build the table without some columns; returns (table, width in characters).

    compact: headers break between words, and values before their ±; names and words are not broken.
    """
    columns = [k for k, column in enumerate(table.columns) if column not in without]
    left_out = [column for column in table.columns if column in without]
    notes = [*table.notes, *([f"no room here for: {', '.join(left_out)}"] if left_out else [])]
    gap = 0 if compact else 1
    shown = RichTable(
        title=Text(table.title, style="bold"),
        title_justify="left",
        caption=Text("\n".join(notes)) if notes else None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, gap, 0, 0),
    )
    total = 1
    for k in columns:
        column, values = table.columns[k], [_tight(row[k]) for group in table.groups for row in group]
        parts = [*column.split(), *(part for value in values for part in value.split())]
        unbroken = values if column in WORDS else []
        width = min(max(map(len, [*parts, *unbroken] if compact else [column, *values])), LONGEST)
        shown.add_column(column, justify="left" if column in WORDS else "right", overflow="fold", width=width)
        total += width + gap + 1
    for i, group in enumerate(table.groups):
        for j, row in enumerate(group):
            cells = [Text(_tight(row[k])) for k in columns]
            if (i, j) in table.best:
                cells[2].stylize("bold")
            shown.add_row(*cells, end_section=j == len(group) - 1 and len(group) > 1)
    return shown, total


def _tight(value: str) -> str:
    """Remove the space after ± and before %, so that no line breaks there."""
    return value.replace("± ", "±").replace(" %", "%")


def markdown_table(results: Results, cell: Cell) -> str:
    """Format a cell's table in Markdown: the title in bold, the rows, the notes."""
    table = table_of(results, cell)
    out = [f"**{escaped(table.title)}**", "", _markdown_row(table.columns)]
    out.append("|" + "|".join(" --- " if column in WORDS else " ---: " for column in table.columns) + "|")
    for i, group in enumerate(table.groups):
        for j, row in enumerate(group):
            shown = [escaped(value) for value in row]
            if (i, j) in table.best:
                shown[2] = f"**{shown[2]}**"
            out.append(_markdown_row(shown))
    if table.notes:
        out += ["", *(f"- {escaped(note)}" for note in table.notes)]
    return "\n".join(out) + "\n"


def _markdown_row(values: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(values) + " |"


def escaped(value: str) -> str:
    """Escape the characters that Markdown would read as marks."""
    for mark in ("\\", "|", "*", "<", "`"):
        value = value.replace(mark, "\\" + mark)
    return value
