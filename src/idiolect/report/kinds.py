"""The kinds of figures that a paper may want of a run, each made by the function that also draws the report's."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from idiolect.core.errors import ConfigError, StoreError
from idiolect.report.captions import sentence
from idiolect.report.figures import WHOLE, Panels, Window, panels_figure
from idiolect.report.latex import Columns, Spread, document, escaped, latex_table
from idiolect.report.sources import SAMPLES, Source
from idiolect.report.style import REPORT, Drawing, Style


@dataclass(frozen=True)
class Wanted:
    """What is to be drawn, and how. cell: its id; methods, models: all if empty; metric: the run's own if empty."""

    cell: str = ""
    methods: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    metric: str = ""
    window: Window = WHOLE
    columns: Columns | None = None
    spread: Spread = "interval"
    style: Style = field(default_factory=lambda: REPORT)


@dataclass(frozen=True)
class Made:
    """A figure, or a table in LaTeX, with its caption as plain text."""

    content: Drawing | str
    caption: str


def curves(source: Source, wanted: Wanted) -> Made:
    """Test score and training loss over rounds."""
    results = source.database("curves")
    loss = wanted.metric == "loss"
    cell = source.cell(source.chosen(wanted.cell), wanted.methods, wanted.models, "" if loss else wanted.metric)
    panels: Panels = "loss" if loss else "score" if wanted.metric else "both"
    models = wanted.models or cell.draw or None
    figure = panels_figure(results, [cell], models, wanted.style, panels=panels, window=wanted.window)
    shown = [] if loss else [f"test {results.metric(cell).column}"]
    shown += ["training loss"] if panels != "score" and (loss or len(figure.axes) > 1) else []
    return _made(figure, f"{' and '.join(shown)} over rounds, {_title(source, cell.id)}")


def clients(source: Source, wanted: Wanted) -> Made:
    """Every client's test score under every method."""
    from idiolect.report.strips import strips_figure

    board = source.board(source.chosen(wanted.cell), wanted.methods, wanted.models, wanted.metric)
    return _made(strips_figure(board, wanted.style), f"test {board.metric.column} of every client, {board.title}")


def gain(source: Source, wanted: Wanted) -> Made:
    """Each client's gain over training alone, against its number of samples."""
    from idiolect.report.gain_figure import gain_figure

    board = source.board(source.chosen(wanted.cell), wanted.methods, wanted.models, wanted.metric)
    figure = gain_figure(board, wanted.style)
    what = f"each client's gain in test {board.metric.column} over training alone"
    return _made(figure, f"{what}, against its {board.size_of} samples, {board.title}")


def times(source: Source, wanted: Wanted) -> Made:
    """Seconds a round, measured and published."""
    from idiolect.report.times import is_timed
    from idiolect.report.times_figure import times_figure

    results = source.database("times")
    cell = source.cell(source.chosen(wanted.cell), wanted.methods, (), "")
    if not is_timed(cell):
        raise ConfigError(f"cell '{cell.id}' has no published seconds a round to compare with")
    return _made(times_figure(results, cell, wanted.style), f"seconds a round, {_title(source, cell.id)}")


def sweep(source: Source, wanted: Wanted) -> Made:
    """Validation score against each setting that was tried."""
    from idiolect.report.sweep_figure import sweep_figure
    from idiolect.report.sweeps import read_swept

    if not source.swept or source.results is None:
        raise StoreError(f"'{source.folder}' is no sweep's folder: make one with idiolect sweep")
    results = source.results
    tasks = [row.provenance.get("task") for row in results.rows.values()]
    task = "regression" if "regression" in tasks else "classification"
    swept = read_swept(source.folder, results.experiment, task)
    title = f"validation {swept.metric.column} against the settings that were tried, {results.experiment.cells[0].id}"
    return _made(sweep_figure(swept, wanted.style), title)


def across(source: Source, wanted: Wanted) -> Made:
    """Test score against the setting that differs between the cells."""
    from idiolect.report.across import across_figure

    results = source.database("these figures")
    experiment = results.experiment
    if not experiment.across:
        raise ConfigError(
            f"the cells of '{source.folder}' do not differ in one setting: its experiment has no 'across'"
        )
    if not source.cells:
        source.chosen("")
    cells = [source.cell(cell.id, wanted.methods, wanted.models, wanted.metric) for cell in experiment.cells]
    figure = across_figure(results, cells, wanted.models or None, wanted.style)
    return _made(figure, f"test {results.metric(cells[0]).column} against {experiment.across}")


def newcomers(source: Source, wanted: Wanted) -> Made:
    """New clients' test score against the number of their own samples."""
    import pandas as pd

    from idiolect.metrics.registry import METRICS
    from idiolect.report.newcomers import own_samples_figure

    path = source.folder / SAMPLES
    if not path.is_file():
        raise StoreError(f"'{source.folder}' has no {SAMPLES}: make it with idiolect personalize")
    try:
        curve = pd.read_csv(path)
        keys = {metric.key: metric for metric in METRICS.values()}
        metrics = [keys[column] for column in curve.columns if column in keys]
        named = [metric for metric in metrics if wanted.metric in ("", metric.name)]
        if {"samples", "model", "client"} - set(curve.columns) or not metrics or curve.empty:
            raise ValueError("columns are missing")
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read as scores of new clients: {str(error).splitlines()[0]}") from error
    if not named:
        raise ConfigError(f"--metric {wanted.metric}: {path} has {', '.join(metric.name for metric in metrics)}")
    if wanted.models:
        curve = curve[curve["model"].isin(list(wanted.models))]
    if curve.empty:
        raise ConfigError(f"--models {','.join(wanted.models)}: none of them is in {path}")
    shown: Any = curve
    figure = own_samples_figure(shown, named[0], "", wanted.style)
    return _made(figure, f"test {named[0].column} of new clients against the number of their own training samples")


def diagnostics(source: Source, wanted: Wanted) -> Made:
    """What methods report of themselves over rounds."""
    from idiolect.report.diagnostics_figure import diagnostics_figure

    results = source.database("diagnostics")
    cell = source.cell(source.chosen(wanted.cell), wanted.methods, (), "")
    figure = diagnostics_figure(results, cell, wanted.style)
    return _made(figure, f"what the methods report of themselves over rounds, {_title(source, cell.id)}")


def graph(source: Source, wanted: Wanted) -> Made:
    """The graph among clients or the relations that were learned, and their spectrum."""
    from idiolect.report.graph_figure import graph_figure
    from idiolect.report.html.recorded import recorded_graphs

    results = source.database("graph")
    cell = source.cell(source.chosen(wanted.cell), wanted.methods, (), "")
    found = recorded_graphs(results, cell)
    if not found:
        raise ConfigError(
            f"cell '{cell.id}' has no graph among clients; fedu and dfedu have one, and mocha learns one"
        )
    figure = graph_figure(found, results.clients(cell), wanted.style)
    return _made(figure, f"who learns with whom, and the spectrum, {_title(source, cell.id)}")


def table(source: Source, wanted: Wanted) -> Made:
    """Test scores of methods and named models, in LaTeX."""
    columns = wanted.columns or ("cells" if len(source.cells) > 1 and not wanted.cell else "metrics")
    names = [source.chosen(wanted.cell)] if wanted.cell or len(source.cells) < 2 else list(source.cells)
    boards = [source.board(name, wanted.methods, wanted.models, wanted.metric) for name in names]
    board = boards[0]
    where = board.title if len(boards) == 1 else f"{len(boards)} federations"
    caption = sentence(f"test {board.metric.column} of every method, {where}")
    label = f"tab:{''.join(c if c.isalnum() else '-' for c in source.folder.resolve().name)}"
    return Made(document(latex_table(boards, columns, wanted.spread), escaped(caption), label), caption)


KINDS: dict[str, Callable[[Source, Wanted], Made]] = {
    "curves": curves,
    "clients": clients,
    "gain": gain,
    "table": table,
    "across": across,
    "times": times,
    "diagnostics": diagnostics,
    "graph": graph,
    "sweep": sweep,
    "newcomers": newcomers,
}
OF_RUNS = ("curves", "across", "times", "diagnostics", "graph")
"""Kinds that need a run's database."""
OF_ALL_CELLS = ("table", "across", "sweep", "newcomers")
"""Kinds of which a folder has one, not one for each cell."""


def possible(source: Source) -> list[tuple[str, str]]:
    """(kind, cell) of every kind that a folder can give, as far as is known before drawing; cell: empty for one."""
    if source.newcomers:
        return [("newcomers", "")]
    if source.swept:
        return [("sweep", "")]
    from idiolect.report.html.recorded import recorded_graphs
    from idiolect.report.times import is_timed

    found: list[tuple[str, str]] = []
    results = source.results
    for name in source.cells:
        board = source.board(name, (), (), "")
        own = ["clients"] if board.scores else []
        own += ["gain"] if (board.local, "local") in board.scores and len(board.scores) > 1 else []
        if results is not None:
            cell = results.experiment.cell(name)
            rows = [row for method in cell.methods for row in results.finished(cell, method)]
            said = any(results.store.diagnostics(row.id) for row in rows)
            own = ["times"] if is_timed(cell) else ["curves", *own]
            own += ["diagnostics"] if said else []
            own += ["graph"] if recorded_graphs(results, cell) else []
        found += [(kind, name) for kind in own]
    if source.cells:
        found.append(("table", ""))
    if results is not None and results.experiment.across and source.cells:
        found.append(("across", ""))
    return found


def name_of(source: Source, kind: str, cell: str, suffix: str) -> str:
    """The name of a figure's file: RUN-KIND, or RUN-CELL-KIND where a folder has several cells."""
    from idiolect.core.files import file_name

    run = file_name(Path(source.folder).resolve().name)
    part = f"-{file_name(cell)}" if cell and len(source.cells) > 1 else ""
    return f"{run}{part}-{kind}.{suffix}"


def _title(source: Source, cell: str) -> str:
    results = source.database("these figures")
    return results.experiment.cell(cell).title or cell


def _made(figure: Drawing, title: str) -> Made:
    return Made(figure, " ".join(sentence(part) for part in (title, *figure.told)))
