"""Where figures come from: a folder of runs, a sweep, what `personalize` wrote, or the CSV files of a report."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from idiolect.core.errors import ConfigError, StoreError, unknown
from idiolect.report.board import Board, board_of
from idiolect.report.from_csv import TABLE, boards_in
from idiolect.study.advice.stored import is_advice
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell
from idiolect.study.store.claim import stored_experiment
from idiolect.study.store.store import DATABASE, Store

SWEEP, SAMPLES = "sweep.csv", "own-samples.csv"


@dataclass(frozen=True, eq=False)
class Source:
    """An opened folder. results: of a run's database; None where the folder has CSV files alone."""

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
    def cells(self) -> tuple[str, ...]:
        """The ids of the cells in which a run is finished, in order."""
        if self.results is None:
            return tuple(board.cell for board in self._boards)
        results = self.results
        cells = results.experiment.cells
        return tuple(cell.id for cell in cells if any(results.finished(cell, method) for method in cell.methods))

    def database(self, kind: str) -> Results:
        """The runs' database. Raises `StoreError` if the folder has CSV files alone."""
        if self.results is None:
            raise StoreError(f"{kind} can be drawn from a run's {DATABASE} alone, and '{self.folder}' has none; "
                             "from CSV files come: clients, gain, table")  # fmt: skip
        return self.results

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

    def cell(self, name: str, methods: Sequence[str], models: Sequence[str], metric: str) -> Cell:
        """A cell of the database with the methods to draw alone, and the metric to draw."""
        results = self.database("these figures")
        cell = results.experiment.cell(name)
        known = {method.title: method for method in cell.methods}
        for wanted in methods:
            if wanted not in known and wanted not in {method.name for method in cell.methods}:
                raise unknown("method of this cell", wanted, known)
        kept = tuple(m for m in cell.methods if not methods or m.title in methods or m.name in methods)
        named = {model for method in kept for model in results.names(cell, method)}
        for model in models:
            if model not in named:
                raise unknown("model of this cell", model, named)
        changed: dict[str, object] = {"methods": kept}
        if metric:
            found = {line_metric for line in results.lines if line.cell == name for line_metric in line.metrics}
            if metric not in found:
                raise unknown("metric of this run", metric, found)
            changed["metric"] = ",".join(dict.fromkeys([metric, *(m.name for m in results.metrics(cell))]))
        return cell.model_copy(update=changed)

    def board(self, name: str, methods: Sequence[str], models: Sequence[str], metric: str) -> Board:
        """A cell's scores of clients, from the database or from CSV files."""
        if self.results is None:
            board = next(board for board in self._boards if board.cell == name)
        else:
            cell = self.results.experiment.cell(name)
            board = board_of(self.results, cell)
            methods = [m.title for wanted in methods for m in cell.methods if wanted in (m.title, m.name)] or methods
        board = board.only(methods, models)
        return board.by_metric(metric) if metric else board

    @cached_property
    def _boards(self) -> list[Board]:
        return boards_in(self.folder) if (self.folder / TABLE).is_file() else []


@contextmanager
def opened(folder: Path) -> Generator[Source]:
    """Open a folder to draw from. Raises `StoreError` if it is not there or holds nothing to draw from."""
    if not folder.is_dir():
        raise StoreError(f"no such run: '{folder}'")
    if (folder / DATABASE).is_file():
        with Store(folder, create=False) as store:
            yield Source(folder, Results(store, stored_experiment(store)))
    elif (folder / TABLE).is_file() or (folder / SAMPLES).is_file():
        yield Source(folder, None)
    elif is_advice(folder):
        raise StoreError(
            f"'{folder}' holds an advice, which has a figure of its own, advice.svg; "
            "draw from a folder of idiolect compare"
        )
    else:
        raise StoreError(f"'{folder}' holds no run: it has none of {DATABASE}, {TABLE}, {SAMPLES}")
