"""Small tables beside a cell's main one: published gaps, published times, settings that validation data chose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from idiolect.config import Cell
from idiolect.report import text
from idiolect.report.table import escaped
from idiolect.results import Results
from idiolect.summary import OverSeeds
from idiolect.tuning import chosen


@dataclass(frozen=True)
class Extra:
    """A small table as strings."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def extras(results: Results, cell: Cell) -> list[Extra]:
    """The small tables that a cell asks for."""
    found: list[Extra] = []
    if cell.gaps:
        rows = tuple(
            (
                f"{line.gap.larger} minus {line.gap.smaller}",
                _points(line.measured),
                f"{line.gap.value:.1f}",
                text.MISSING if line.measured.seeds == 0 else f"{line.measured.mean - line.gap.value:+.2f}",
                line.verdict,
            )
            for line in results.gaps(cell)
        )
        found.append(
            Extra("Published gaps, in points", ("gap", "measured", "published", "difference", "verdict"), rows)
        )
    if any(method.published_seconds for method in cell.methods):
        found.append(_times(results, cell))
    if cell.tune:
        task = results.task(cell)
        rows = tuple(
            (
                pick.method,
                str(pick.tried),
                pick.line.method,
                pick.line.model,
                text.score(pick.validation, task),
                text.score(pick.line.weighted, task),
                text.score(pick.line.mean, task),
                text.score(pick.line.worst10, task),
            )
            for pick in chosen(results, cell)
        )
        header = ("method", "tried", "chosen", "model", "validation", "test", "test, client mean", "test, worst 10 %")
        found.append(Extra("Settings chosen on validation data", header, rows))
    return found


def _times(results: Results, cell: Cell) -> Extra:
    """Seconds a round, and as multiples of the method that is the fastest in the paper."""
    published = {method.title: method.published_seconds for method in cell.methods if method.published_seconds}
    measured = {method.title: results.round_seconds(cell, method) for method in cell.methods}
    base = min(published, key=lambda title: published[title])

    def times(seconds: Mapping[str, float], title: str) -> str:
        return f"{seconds[title] / seconds[base]:.2f}" if {title, base} <= seconds.keys() else text.MISSING

    ran = {title: value.mean for title, value in measured.items() if value.seeds}
    rows = tuple(
        (
            title,
            text.value(measured[title].mean),
            times(ran, title),
            f"{published[title]:g}" if title in published else text.MISSING,
            times(published, title),
        )
        for title in measured
    )
    header = ("method", "measured", f"times {base}", "published", f"times {base}, published")
    return Extra("Seconds a round, without compiling; on another machine only the ratios compare", header, rows)


def diagnostics(results: Results, cell: Cell) -> Extra | None:
    """What the methods of a cell said of themselves when each run was evaluated last; None if nothing."""
    rows = tuple(
        (row.label, str(row.seed), name, str(course[-1][0]), text.value(course[-1][1]))
        for row in results.started()
        if row.cell == cell.id
        for name, course in results.store.diagnostics(row.id).items()
    )
    header = ("method", "seed", "diagnostic", "round", "value")
    return Extra("Diagnostics, when last evaluated", header, rows) if rows else None


def _points(value: OverSeeds) -> str:
    if value.seeds == 0:
        return text.MISSING
    return f"{value.mean:.2f} ± {value.std:.2f}" if value.seeds > 1 else f"{value.mean:.2f}"


def markdown_extra(extra: Extra) -> str:
    """The table in Markdown."""

    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(escaped(c) for c in cells) + " |"

    lines = [row(extra.header), "|" + "---|" * len(extra.header), *(row(r) for r in extra.rows)]
    return f"**{extra.title}**\n\n" + "\n".join(lines)


def rich_extra(extra: Extra) -> Table:
    """The table for a terminal."""
    table = Table(title=extra.title, title_justify="left")
    for column in extra.header:
        table.add_column(column)
    for row in extra.rows:
        table.add_row(*row)
    return table
