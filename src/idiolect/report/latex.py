"""A comparison's table in LaTeX (booktabs): best in bold by test, notes that say what was done."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from idiolect.core.errors import ConfigError
from idiolect.metrics.base import Metric
from idiolect.report import text
from idiolect.report.style import seeds_text
from idiolect.report.view.parts import MEAN, WORST, Key, Part
from idiolect.study.analyse.intervals import best_of
from idiolect.study.store.summary import OverSeeds

Columns = Literal["cells", "metrics"]
Spread = Literal["interval", "std"]
SPREADS = {
    "interval": "half of the 95\\,\\% interval over seeds (Student's t)",
    "std": "standard deviation over seeds",
}
_MARKS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "—": "---",
    "²": r"$^2$",
} | {mark: f"\\{mark}" for mark in "&%$#_"}


def escaped(words: str) -> str:
    """Escape what LaTeX reads as commands; a name is one line."""
    return "".join(_MARKS.get(letter, letter) for letter in " ".join(words.split()))


@dataclass(frozen=True)
class Column:
    """A column of the table: its heading, and the part and the name of its values."""

    heading: str
    part: Part
    name: str

    @property
    def metric(self) -> Metric:
        """The metric of its values."""
        return next((metric for metric in self.part.measured_metrics if metric.name == self.name), self.part.metric)


def latex_table(parts: Sequence[Part], columns: Columns, spread: Spread = "interval") -> str:
    """Write the table: a row for each method and named model, a column for each cell, or each metric of one cell.

    Bold are the best of a column and all that a paired test over seeds does not distinguish from it, with Holm's
    correction for all pairs of the column. With one seed nothing is bold, and a note says so. Raises `ConfigError`
    for metrics of several cells.
    """
    if columns == "metrics" and len(parts) > 1:
        raise ConfigError(f"--columns metrics is of one cell; give --cell: {', '.join(b.id for b in parts)}")
    made = _cells(parts) if columns == "cells" else _metrics(parts[0])
    rows: list[Key] = list(dict.fromkeys(key for column in made for key in column.part.drawn(every=True)))
    bold = [_bold(column) for column in made]
    lines: list[str] = []
    before = ""
    for method, model in rows:
        lines += [r"\addlinespace"] if before and before != method else []
        names = next(column.part.names for column in made if method in column.part.first)
        shown = [escaped(names.get(method, method)) if method != before else "", escaped(model)]
        for column, best in zip(made, bold, strict=True):
            found = column.part.over_seeds((method, model), column.name)
            value = "---" if not found.seeds else _value(found, column.metric, spread)
            shown.append(rf"\textbf{{{value}}}" if (method, model) in best else value)
        lines.append(" & ".join(shown) + r" \\")
        before = method
    heads = " & ".join(["Method", "Model", *(escaped(column.heading) for column in made)])
    return "\n".join(
        [
            rf"\begin{{tabular}}{{ll{'r' * len(made)}}}",
            r"\toprule",
            rf"{heads} \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\par\smallskip",
            rf"{{\footnotesize {_notes(made, bold, spread)}\par}}",
            "",
        ]
    )


def document(table: str, caption: str, label: str) -> str:
    """Write the table as a float that a paper includes by `\\input`; booktabs is the only package it needs.

    A table of more than two columns of numbers spans both columns of a two-column paper.
    """
    columns = table.partition("\n")[0].rpartition("{ll")[2].count("r")
    name = "table*" if columns > 2 else "table"
    lines = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{{name}}}[t]",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\label{{{label}}}",
        table + rf"\end{{{name}}}",
    ]
    return "\n".join(lines) + "\n"


def _cells(parts: Sequence[Part]) -> list[Column]:
    alike = len({part.metric.name for part in parts}) == 1
    return [
        Column(part.title if alike else f"{part.title}, {part.metric.column}", part, part.metric.name)
        for part in parts
    ]


def _metrics(part: Part) -> list[Column]:
    measured = {name for line in part.lines for name, value in line.metrics.items() if not math.isnan(value.mean)}
    names = [metric.name for metric in part.measured_metrics if metric.name in measured]
    headings = {metric.name: metric.column for metric in part.measured_metrics}
    return [Column(headings.get(name, name), part, name) for name in (*names, MEAN, WORST)]


def _bold(column: Column) -> frozenset[Key]:
    values = {key: column.part.values(key, column.name) for key in column.part.drawn(every=True)}
    best = best_of(values, higher=column.metric.higher, resolution=column.part.resolution(column.name))
    return frozenset() if best is None else best.alike


def _value(value: OverSeeds, metric: Metric, spread: Spread) -> str:
    width = value.std if spread == "std" else value.half_width
    shown = text.with_width(metric.unit * value.mean, metric.unit * width, metric)
    mean, plus, after = shown.partition(" ± ")
    return f"{_number(mean)} $\\pm$ {_number(after)}" if plus else _number(mean)


def _number(shown: str) -> str:
    return f"${shown}$" if shown.startswith("-") else escaped(shown)


def _notes(columns: Sequence[Column], bold: Sequence[frozenset[Key]], spread: Spread) -> str:
    parts = list({id(column.part): column.part for column in columns}.values())
    counts = [len(b.measured(key)) for b in parts for key in b.drawn(every=True) if b.measured(key)]
    counts = counts or [line.pooled.seeds for part in parts for line in part.lines]
    planned = max(len(part.seeds) for part in parts)
    names = {column.metric.name: column.metric for column in columns}
    units = [
        f"{m.column}{' in %' if m.percent else ''}{'' if m.higher else ' (lower is better)'}" for m in names.values()
    ]
    told = [f"Test {escaped(', '.join(units))}, over all test samples unless named otherwise."]
    several = max(counts, default=0) > 1
    seeds = escaped(seeds_text(counts, planned))
    told.append(f"Mean of {seeds} $\\pm$ {SPREADS[spread]}." if several else f"{seeds.capitalize()}: no interval.")
    if selected := sorted({part.selected for part in parts if part.selected}):
        told.append(f"Shown: {escaped('; '.join(selected))}.")
    if any(bold):
        told.append(
            "Bold: the best of a column and all that do not differ from it beyond noise "
            "(paired t test over seeds, Holm's correction over all pairs, 5\\,\\%)."
        )
        if not all(bold):
            which = ", ".join(column.heading for column, best in zip(columns, bold, strict=True) if not best)
            told.append(f"Nothing is bold in {escaped(which)}: not known seed by seed.")
    else:
        seedless = not any(part.scored for part in parts)
        why = "scores are not known seed by seed" if seedless else "fewer than two models have several seeds"
        why = why if several else "one seed proves no difference"
        told.append(f"Nothing is bold: {why}.")
    return " ".join(told)
