"""Tables on a terminal, where columns are left out before words are broken."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions
from rich.table import Table as RichTable
from rich.text import Text

from idiolect.report.text import bare
from idiolect.report.view.columns import Table, table_of
from idiolect.report.view.conclusion import Conclusion, conclusion_of
from idiolect.report.view.parts import Extra, Part

LONGEST = 28  # characters; longer names are wrapped


@dataclass(frozen=True)
class TerminalTable:
    """A table that rich prints wide, else compact, else without its least important columns and with a note."""

    table: Table
    conclusion: Conclusion | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RichTable | Text]:
        """Yield the headline, its numbers, and the widest form that fits, or the narrowest if none does."""
        if self.conclusion is not None:
            yield Text(bare(self.conclusion.headline), style="bold")
            yield Text(bare(self.conclusion.numbers))
            yield Text("; ".join(chip.title for chip in self.conclusion.chips) + "\n")
        forms = [rich_form(self.table)]
        ranked = sorted((column for column in self.table.heads if column.rank), key=lambda column: -column.rank)
        dispensable = tuple(column.title for column in ranked)
        forms += [rich_form(self.table, dispensable[:n], compact=True) for n in range(len(dispensable) + 1)]
        yield next((form for form, width in forms if width <= options.max_width), forms[-1][0])


def rich_table(part: Part) -> TerminalTable:
    """Build the table of a part, to be printed on a `rich` console, below its headline if methods are compared."""
    return TerminalTable(table_of(part), conclusion_of(part) if part.pairs else None)


def in_short(part: Part, note: str = "") -> Text:
    """One of several comparisons in one paragraph: its title, its headline, and what is known of it beforehand."""
    shown = Text.assemble((f"{part.title}: ", "bold"), bare(conclusion_of(part).headline))
    return shown.append(f" {note}", "dim") if note else shown


def rich_extra(extra: Extra) -> RichTable:
    """Build a small table for a terminal."""
    table = RichTable(title=extra.title, title_justify="left")
    for column in extra.header:
        table.add_column(column)
    for row in extra.rows:
        table.add_row(*row)
    return table


def rich_form(table: Table, without: tuple[str, ...] = (), *, compact: bool = False) -> tuple[RichTable, int]:
    """Build the table without some columns; returns (table, width in characters).

    compact: headers break between words, and values before their ±; names and words are not broken.
    """
    heads, rows = table.heads, table.printed()
    columns = [k for k, column in enumerate(heads) if column.title not in without]
    left_out = [column.title for column in heads if column.title in without]
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
        column, values, numeric = heads[k].title, [_tight(row[k]) for row in rows], heads[k].numeric
        parts = [*column.split(), *(part for value in values for part in value.split())]
        unbroken = [] if numeric else values
        width = min(max(map(len, [*parts, *unbroken] if compact else [column, *values])), LONGEST)
        shown.add_column(column, justify="right" if numeric else "left", overflow="fold", width=width)
        total += width + gap + 1
    lines = list(zip(table.rows, rows, strict=True))
    for (row, texts), after in zip(lines, [*lines[1:], None], strict=True):
        cells = [Text(_tight(texts[k]), style="bold" if row.best and heads[k].marked else "") for k in columns]
        ends = after is None or after[0].first
        shown.add_row(*cells, end_section=ends and not row.first)
    return shown, total


def _tight(value: str) -> str:
    """Remove the space after ± and before %, so that no line breaks there."""
    return value.replace("± ", "±").replace(" %", "%")
