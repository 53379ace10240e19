"""Where figures come from: a folder of runs, a sweep, what `personalize` wrote, or the files of a report."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from idiolect.core.errors import ConfigError, StoreError, unknown
from idiolect.report.view.as_json import REPORT
from idiolect.report.view.folder import view_of_folder
from idiolect.report.view.from_csv import TABLE
from idiolect.report.view.from_store import part_of, runs_of
from idiolect.report.view.parts import Part, Run, View
from idiolect.study.advice.stored import is_advice
from idiolect.study.engine import stored_experiment
from idiolect.study.results import Results
from idiolect.study.store import DATABASE, Store

SWEEP, SAMPLES = "sweep.csv", "own-samples.csv"


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
        return (self.folder / SAMPLES).is_file()

    @cached_property
    def _view(self) -> View:
        """What the folder's report says; no part where it has no table."""
        if self.results is None:
            known = (self.folder / REPORT).is_file() or (self.folder / TABLE).is_file()
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
        return self.results is not None or (self.folder / REPORT).is_file()

    def needs_runs(self, kind: str) -> None:
        """Raise `StoreError` for a kind of figure that CSV files do not give, if the folder has only these."""
        if not self.recorded:
            raise StoreError(f"{kind} can be drawn from a run's {DATABASE} alone, and '{self.folder}' has none; "
                             "from CSV files come: clients, gain, table")  # fmt: skip

    def chosen(self, cell: str) -> str:
        """The cell that is meant, an id. Raises `ConfigError` if it is unknown, or if several may be meant."""
        cells = list(self.cells)
        if not cells and (self.swept or self.newcomers):
            kind = "sweep" if self.swept else "newcomers"
            raise ConfigError(f"'{self.folder}' has no cell with finished runs; of it can be drawn: {kind}")
        if not cells:
            raise StoreError(f"nothing in '{self.folder}' is finished yet; go on with: idiolect resume {self.folder}")
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


@contextmanager
def opened(folder: Path) -> Generator[Source]:
    """Open a folder to draw from. Raises `StoreError` if it is not there or holds nothing to draw from."""
    if not folder.is_dir():
        raise StoreError(f"no such run: '{folder}'")
    if (folder / DATABASE).is_file():
        with Store(folder, create=False) as store:
            yield Source(folder, Results(store, stored_experiment(store)))
    elif any((folder / name).is_file() for name in (REPORT, TABLE, SAMPLES)):
        yield Source(folder, None)
    elif is_advice(folder):
        raise StoreError(
            f"'{folder}' holds an advice, which has a figure of its own, advice.svg; "
            "draw from a folder of idiolect compare"
        )
    else:
        raise StoreError(f"'{folder}' holds no run: it has none of {DATABASE}, {TABLE}, {SAMPLES}")
