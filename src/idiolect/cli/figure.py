"""The command `figure`: one figure or table of a run, as a paper needs it."""

import math
import sys
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from idiolect.cli.options import MORE, Json, check_output, file_path, names_in
from idiolect.cli.terminal import print_json
from idiolect.core.errors import ConfigError, IdiolectError, require
from idiolect.core.loading import loading

if TYPE_CHECKING:
    from idiolect.report.kinds import Source, Wanted

INCHES = {"single": 3.25, "double": 6.75}
NARROWEST, WIDEST = 1.5, 40.0
CM = 2.54


class Kind(StrEnum):
    """The kinds of figures; `all` is every kind that a run can give."""

    curves = "curves"
    clients = "clients"
    gain = "gain"
    table = "table"
    across = "across"
    times = "times"
    diagnostics = "diagnostics"
    graph = "graph"
    sweep = "sweep"
    newcomers = "newcomers"
    all = "all"


DRAWN = (".pdf", ".svg", ".png", ".tex")
"""The suffixes of what figures are written to, which nothing is drawn from."""


class Form(StrEnum):
    """The formats of a figure."""

    pdf = "pdf"
    svg = "svg"
    png = "png"


class Look(StrEnum):
    """The styles of a figure."""

    report = "report"
    paper = "paper"


class Font(StrEnum):
    """The fonts of a paper's figure; both come with matplotlib."""

    sans = "sans"
    serif = "serif"


class Columns(StrEnum):
    """What the columns of a table are."""

    cells = "cells"
    metrics = "metrics"


class Spread(StrEnum):
    """What follows ± in a table."""

    interval = "interval"
    std = "std"


def inches(text: str) -> float:
    """Read a width in inches: single, double, 8.4cm, 84mm, 3.3in or a bare number of cm. Raises `ConfigError`."""
    if text in INCHES:
        return INCHES[text]
    for unit, size in (("cm", CM), ("mm", 10 * CM), ("in", 1.0), ("", CM)):
        number = text.strip().removesuffix(unit).strip()
        if text.strip().endswith(unit) and number:
            try:
                width = float(number) / size
            except ValueError:
                continue
            if math.isfinite(width) and NARROWEST <= width <= WIDEST:
                return width
    raise ConfigError(f"--width {text}: write single, double, or a width such as 8.4cm or 3.3in, "
                      f"from {NARROWEST} to {WIDEST:g} inches")  # fmt: skip


def figure(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A folder of runs, or of a report's CSV files.")],
    kind: Annotated[
        Kind,
        typer.Argument(
            metavar="KIND",
            help="What to draw: curves, clients, gain, table, across, times, diagnostics, graph, sweep, newcomers; "
            "or all: every kind that the run can give.",
            show_default=False,
        ),
    ],
    form: Annotated[
        Form | None,
        typer.Option("--format", metavar="FORMAT", help="pdf, svg or png (default: --out's suffix, else pdf)."),
    ] = None,
    style: Annotated[
        Look, typer.Option("--style", metavar="STYLE", help="report: as in the report; paper: for a column.")
    ] = Look.report,
    width: Annotated[
        str,
        typer.Option(
            "--width",
            rich_help_panel=MORE,
            metavar="WIDTH",
            help="Width of a paper's column: single (3.25 in), double (6.75 in), 8.4cm, 3.3in.",
        ),
    ] = "single",
    font: Annotated[
        Font,
        typer.Option(
            "--font", rich_help_panel=MORE, metavar="FONT", help="Font of a paper's figure: sans, or serif as Times."
        ),
    ] = Font.sans,
    cell: Annotated[str, typer.Option("--cell", metavar="NAME", help="The cell, if the run has several.")] = "",
    methods: Annotated[
        str,
        typer.Option("--methods", metavar="METHODS", help="Draw only these labels or names, comma-separated."),
    ] = "",
    models: Annotated[
        str, typer.Option("--models", metavar="MODELS", help="Draw only these named models, comma-separated.")
    ] = "",
    metric: Annotated[
        str,
        typer.Option(
            "--metric", metavar="METRIC", help="Draw this metric of those that were measured; curves: also loss."
        ),
    ] = "",
    xmax: Annotated[
        float | None,
        typer.Option("--xmax", rich_help_panel=MORE, metavar="ROUND", help="Curves: the last round to draw."),
    ] = None,
    ymin: Annotated[
        float | None,
        typer.Option(
            "--ymin", rich_help_panel=MORE, metavar="SCORE", help="Curves: the lower end of the score's axis."
        ),
    ] = None,
    ymax: Annotated[
        float | None,
        typer.Option(
            "--ymax", rich_help_panel=MORE, metavar="SCORE", help="Curves: the upper end of the score's axis."
        ),
    ] = None,
    columns: Annotated[
        Columns | None,
        typer.Option(
            "--columns",
            rich_help_panel=MORE,
            metavar="KIND",
            help="Table: a column for each of cells, or of metrics of one cell.",
        ),
    ] = None,
    spread: Annotated[
        Spread,
        typer.Option(
            "--spread", rich_help_panel=MORE, metavar="KIND", help="Table: what follows ±, interval or std."
        ),
    ] = Spread.interval,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            parser=file_path,
            metavar="FILE",
            help="Output file, which is overwritten (default: ./RUN-KIND.pdf); for 'all' a folder.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw a figure of a run for a paper, or write its table in LaTeX; its caption is printed for LaTeX.

    Examples:
    idiolect figure runs/penguins-1a2b3c clients
    idiolect figure runs/penguins-1a2b3c curves --style paper -o curves.pdf

    Writes: the file of --out, by default ./RUN-KIND.pdf (a table: .tex); with KIND all, one file per kind.
    """
    require(xmax is None or not xmax < 0, f"--xmax {xmax:g}: a round is 0 or more" if xmax is not None else "")
    ends = {"--xmax": xmax, "--ymin": ymin, "--ymax": ymax}
    for name, value in ends.items():
        require(value is None or math.isfinite(value), f"{name} {value} must be a finite number")
    require(ymin is None or ymax is None or ymin < ymax, f"--ymin {ymin} must be below --ymax {ymax}")
    paper_width = inches(width)
    with loading():
        from idiolect.report.figures import Window
        from idiolect.report.kinds import OF_ALL_CELLS, OF_RUNS, Wanted, name_of, opened, possible
        from idiolect.report.style import REPORT, paper

    wanted = Wanted(
        cell=cell,
        methods=tuple(names_in(methods)),
        models=tuple(names_in(models)),
        metric=metric,
        window=Window(xmax, ymin, ymax),
        columns=None if columns is None else columns.value,
        spread=spread.value,
        style=REPORT if style is Look.report else paper(paper_width, font.value),
    )
    if out is not None and not out.is_dir():
        check_output(out, folder, unread=DRAWN)
    with opened(folder) as source:
        if kind is Kind.all:
            target = out or Path()
            require(target.is_dir(), f"--out {target}: for 'all' it must be a folder that is there")
            wished = [(k, c) for k, c in possible(source) if not cell or c in ("", cell)]
            if not wished:
                source.chosen(cell)
            files = [(k, c, target / name_of(source, k, c, _suffix(k, form, None))) for k, c in wished]
        else:
            if kind in OF_RUNS:
                source.needs_runs(kind.value)
            whole = kind in OF_ALL_CELLS and not (cell and kind is Kind.table)
            own = "" if whole else source.chosen(cell)
            name = name_of(source, kind.value, own, _suffix(kind.value, form, out))
            files = [(kind.value, own, _checked(out or Path(name)))]
        for _, _, path in files:
            check_output(path, folder, unread=DRAWN)
        made: list[dict[str, str]] = []
        for one, own, path in files:
            try:
                made.append(_make(source, one, own, path, wanted))
            except IdiolectError as error:
                if kind is not Kind.all:
                    raise
                print(f"no {one}: {error}", file=sys.stderr)
    if as_json:
        print_json({"files": made})
        return
    for one in made:
        print(one["file"])
        print(one["latex"])


def _make(source: "Source", kind: str, cell: str, path: Path, wanted: "Wanted") -> dict[str, str]:
    """Draw one figure and write it; returns its file and its captions."""
    from dataclasses import replace

    from idiolect.core.files import write_text
    from idiolect.report.kinds import KINDS
    from idiolect.report.latex import escaped
    from idiolect.report.style import write

    with wanted.style.applied(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made = KINDS[kind](source, replace(wanted, cell=cell))
        if isinstance(made.content, str):
            write_text(path, made.content, shared=True)
        else:
            write(made.content, path, path.suffix.lower().removeprefix("."), wanted.style)
    if any("missing from font" in str(one.message) for one in said):
        print(f"{path}: the font lacks some letters of a name, which are drawn as boxes", file=sys.stderr)
    return {
        "kind": kind,
        "file": str(path),
        "caption": made.caption,
        "latex": rf"\caption{{{escaped(made.caption)}}}",
    }


def _suffix(kind: str, form: Form | None, out: Path | None) -> str:
    """The suffix of a file, and thereby its format. Raises `ConfigError` where --format and --out differ."""
    if kind == "table":
        return "tex"
    named = "" if out is None else out.suffix.lower().removeprefix(".")
    if named and named not in {known.value for known in Form}:
        raise ConfigError(f"--out {out}: '.{named}' is no format of a figure; choose {', '.join(Form)}")
    if form is not None and named and named != form.value:
        raise ConfigError(f"--out {out} and --format {form.value} differ; leave one out")
    if out is not None and not named:
        raise ConfigError(f"--out {out}: give it a suffix: {', '.join(f'.{known}' for known in Form)}")
    return named or (form or Form.pdf).value


def _checked(path: Path) -> Path:
    """The path, if a file can be there. Raises `ConfigError` otherwise."""
    require(not path.is_dir(), f"--out {path} is a folder; name a file")
    require(path.parent.is_dir(), f"--out {path}: there is no folder '{path.parent}'")
    return path
