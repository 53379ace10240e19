"""The kinds of figures that a paper may want of a folder, each made by the function that also draws the report's."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from idiolect.core.errors import ConfigError, StoreError, unknown
from idiolect.core.files import plain_or_packed
from idiolect.report.figures import WHOLE, Panels, Window, panels_figure
from idiolect.report.latex import Columns, Spread, document, escaped, latex_table
from idiolect.report.style import REPORT, Drawing, Style, sentence
from idiolect.report.view.as_json import REPORT as REPORT_JSON
from idiolect.report.view.folder import new_clients, view_of_folder
from idiolect.report.view.from_csv import OWN_SAMPLES, TABLE
from idiolect.report.view.from_store import part_of, runs_of
from idiolect.report.view.parts import Part, Run, View
from idiolect.study.advice.stored import is_advice
from idiolect.study.analyse.results import Results
from idiolect.study.store.claim import stored_experiment
from idiolect.study.store.store import DATABASE, Store

SWEEP = "sweep.csv"


@dataclass(frozen=True, eq=False)
class Source:
    """An opened folder. results: of a run's database; None where the folder has a report's files only."""

    folder: Path
    results: Results | None

    @property
    def swept(self) -> bool:
        """Whether the folder is a sweep's."""
        return self.results is not None and (self.folder / SWEEP).is_file()

    @property
    def newcomers(self) -> bool:
        """Whether the folder holds new clients' scores against the number of their own samples."""
        return (self.folder / OWN_SAMPLES).is_file()

    @cached_property
    def _view(self) -> View:
        """What the folder's report says; no part where it has no table."""
        if self.results is None:
            known = _compared(self.folder) or (self.folder / TABLE).is_file()
            return view_of_folder(self.folder) if known else View(title="", parts=())
        results = self.results
        parts = tuple(part_of(results, cell, compared=False) for cell in results.experiment.cells)
        return View(title="", parts=parts, across=results.experiment.across, runs=runs_of(results))

    @property
    def across(self) -> str:
        """The setting that differs between the cells; empty if there is none."""
        return self._view.across

    @property
    def runs(self) -> tuple[Run, ...]:
        """Every run; none where the folder has CSV files only."""
        return self._view.runs

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """The ids of the cells in which a run is finished, in order."""
        return tuple(part.id for part in self._view.parts if part.ended)

    @property
    def recorded(self) -> bool:
        """Whether curves, times and graphs are known, and not only what CSV files hold."""
        return self.results is not None or _compared(self.folder)

    def needs_runs(self, kind: str) -> None:
        """Raise `StoreError` for a kind of figure that CSV files do not give, if the folder has only these."""
        if not self.recorded:
            raise StoreError(f"{kind} can be drawn from a run's {DATABASE} only, and '{self.folder}' has none; "
                             "from CSV files come: clients, gain, table")  # fmt: skip

    def chosen(self, cell: str) -> str:
        """The cell that is meant, an id. Raises `ConfigError` if it is unknown, or if several may be meant."""
        cells = list(self.cells)
        if not cells and (self.swept or self.newcomers):
            kind = "sweep" if self.swept else "newcomers"
            raise ConfigError(f"'{self.folder}' has no cell with finished runs; of it can be drawn: {kind}")
        if not cells:
            raise StoreError(
                f"nothing in '{self.folder}' is finished yet; continue with: idiolect resume {self.folder}"
            )
        if cell:
            if cell not in cells:
                raise unknown("cell", cell, cells)
            return cell
        if len(cells) > 1:
            raise ConfigError(f"'{self.folder}' has several cells; choose one with --cell: {', '.join(cells)}")
        return cells[0]

    def part(self, name: str, methods: Sequence[str] = (), models: Sequence[str] = (), metric: str = "") -> Part:
        """A cell with the methods and models to draw, by the metric to draw; the run's own if it is empty."""
        part = next(part for part in self._view.parts if part.id == name)
        if metric and metric != part.metric.name and self.results is not None:
            measured = {known for line in part.lines for known in line.metrics}
            if metric not in measured:
                raise unknown("metric of this run", metric, measured)
            names = ",".join(dict.fromkeys([metric, *(m.name for m in part.measured_metrics)]))
            cell = self.results.experiment.cell(name).model_copy(update={"metric": names})
            part = part_of(self.results, cell, compared=False)
        elif metric:
            part = part.by_metric(metric)
        return part.drawing(methods, models)

    @property
    def every(self) -> tuple[str, ...]:
        """The ids of all cells."""
        return tuple(part.id for part in self._view.parts)


def _compared(folder: Path) -> bool:
    """Whether a folder has the report.json of a comparison; that of new clients has another form."""
    return plain_or_packed(folder / REPORT_JSON) is not None and new_clients(folder) is None


@contextmanager
def opened(folder: Path) -> Generator[Source]:
    """Open a folder to draw from. Raises `StoreError` if it is not there or holds nothing to draw from."""
    if not folder.is_dir():
        raise StoreError(f"no such run: '{folder}'")
    if (folder / DATABASE).is_file():
        with Store(folder, create=False) as store:
            yield Source(folder, Results(store, stored_experiment(store)))
    elif is_advice(folder):
        raise StoreError(
            f"'{folder}' holds an advice, which has a figure of its own, advice.svg; "
            "draw from a folder of idiolect compare"
        )
    elif _compared(folder) or any((folder / name).is_file() for name in (TABLE, OWN_SAMPLES)):
        yield Source(folder, None)
    else:
        raise StoreError(f"'{folder}' holds no run: it has none of {DATABASE}, {TABLE}, {OWN_SAMPLES}")


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
    source.needs_runs("curves")
    loss = wanted.metric == "loss"
    name = source.chosen(wanted.cell)
    part = source.part(name, wanted.methods, wanted.models, "" if loss else wanted.metric)
    if wanted.metric and not part.quantities:
        raise StoreError(f"curves of {wanted.metric} can be drawn from a run's database only, not from its report")
    panels: Panels = "loss" if loss else "score" if wanted.metric else "both"
    figure = panels_figure([part], (), wanted.style, panels=panels, window=wanted.window)
    shown = [] if loss else [f"test {part.metric.column}"]
    shown += ["training loss"] if panels != "score" and (loss or len(figure.axes) > 1) else []
    return _made(figure, f"{' and '.join(shown)} over rounds, {part.title}")


def clients(source: Source, wanted: Wanted) -> Made:
    """Every client's test score under every method."""
    from idiolect.report.client_figures import strips_figure

    part = source.part(source.chosen(wanted.cell), wanted.methods, wanted.models, wanted.metric)
    return _made(strips_figure(part, wanted.style), f"test {part.metric.column} of every client, {part.title}")


def gain(source: Source, wanted: Wanted) -> Made:
    """Each client's gain over local training by its number of samples."""
    from idiolect.report.client_figures import gain_figure

    part = source.part(source.chosen(wanted.cell), wanted.methods, wanted.models, wanted.metric)
    figure = gain_figure(part, wanted.style)
    what = f"each client's gain in test {part.metric.column} over local training"
    return _made(figure, f"{what}, against its {part.sizes()[1]} samples, {part.title}")


def times(source: Source, wanted: Wanted) -> Made:
    """Seconds per round, measured and published."""
    from idiolect.report.figures import times_figure

    source.needs_runs("times")
    part = source.part(source.chosen(wanted.cell), wanted.methods)
    if not part.timed:
        raise ConfigError(f"cell '{part.id}' has no published seconds per round to compare with")
    return _made(times_figure(part, wanted.style), f"seconds per round, {part.title}")


def sweep(source: Source, wanted: Wanted) -> Made:
    """Validation score against each setting that was tried."""
    from idiolect.report.sweeps import read_swept, sweep_figure

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
    from idiolect.report.figures import across_figure

    source.needs_runs("these figures")
    if not source.across:
        raise ConfigError(
            f"the cells of '{source.folder}' do not differ in one setting: its experiment has no 'across'"
        )
    if not source.cells:
        source.chosen("")
    parts = [source.part(name, wanted.methods, wanted.models, wanted.metric) for name in source.every]
    figure = across_figure(parts, source.across, wanted.style)
    return _made(figure, f"test {parts[0].metric.column} against {source.across}")


def newcomers(source: Source, wanted: Wanted) -> Made:
    """New clients' test score against the number of their own samples."""
    import pandas as pd

    from idiolect.metrics.registry import METRICS
    from idiolect.report.newcomers import own_samples_figure

    path = source.folder / OWN_SAMPLES
    if not path.is_file():
        raise StoreError(f"'{source.folder}' has no {OWN_SAMPLES}: make it with idiolect personalize")
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
    from idiolect.report.figures import diagnostics_figure

    source.needs_runs("diagnostics")
    part = source.part(source.chosen(wanted.cell), wanted.methods)
    figure = diagnostics_figure(part, source.runs, wanted.style)
    return _made(figure, f"what the methods report of themselves over rounds, {part.title}")


def graph(source: Source, wanted: Wanted) -> Made:
    """The graph among clients or the relations that were learned, and their spectrum."""
    from idiolect.report.graph_figure import graph_figure

    source.needs_runs("graph")
    part = source.part(source.chosen(wanted.cell), wanted.methods)
    found = [graph for graph in part.graphs if not part.only[0] or graph["method"] in part.only[0]]
    if not found:
        raise ConfigError(
            f"cell '{part.id}' has no graph among clients; fedu and dfedu have one, and mocha learns one"
        )
    figure = graph_figure(found, part.clients, wanted.style)
    return _made(figure, f"who learns with whom, and the spectrum, {part.title}")


def table(source: Source, wanted: Wanted) -> Made:
    """Test scores of methods and named models, in LaTeX."""
    columns = wanted.columns or ("cells" if len(source.cells) > 1 and not wanted.cell else "metrics")
    names = [source.chosen(wanted.cell)] if wanted.cell or len(source.cells) < 2 else list(source.cells)
    parts = [source.part(name, wanted.methods, wanted.models, wanted.metric) for name in names]
    part = parts[0]
    where = part.title if len(parts) == 1 else f"{len(parts)} federations"
    caption = sentence(f"test {part.metric.column} of every method, {where}")
    label = f"tab:{''.join(c if c.isalnum() else '-' for c in source.folder.resolve().name)}"
    return Made(document(latex_table(parts, columns, wanted.spread), escaped(caption), label), caption)


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
    found: list[tuple[str, str]] = []
    for name in source.cells:
        part = source.part(name)
        own = ["clients"] if part.scored else []
        alone, others = part.alone, [key for key, by_seed in part.scores.items() if by_seed and key != part.alone]
        own += ["gain"] if alone is not None and part.measured(alone) and others else []
        if source.recorded:
            own = ["times"] if part.timed else ["curves", *own]
            ended = [run for run in source.runs if run.cell == name and run.status == "done"]
            own += ["diagnostics"] if any(run.diagnostics for run in ended) else []
            own += ["graph"] if part.graphs else []
        found += [(kind, name) for kind in own]
    if source.cells:
        found.append(("table", ""))
    if source.across and source.cells:
        found.append(("across", ""))
    return found


def name_of(source: Source, kind: str, cell: str, suffix: str) -> str:
    """The name of a figure's file: RUN-KIND, or RUN-CELL-KIND where a folder has several cells."""
    from idiolect.core.files import file_name

    run = file_name(Path(source.folder).resolve().name)
    part = f"-{file_name(cell)}" if cell and len(source.cells) > 1 else ""
    return f"{run}{part}-{kind}.{suffix}"


def _made(figure: Drawing, title: str) -> Made:
    return Made(figure, " ".join(sentence(part) for part in (title, *figure.told)))
