"""Run an experiment with a progress display, and write its report."""

from pathlib import Path
from typing import Any

from idiolect.core.errors import IdiolectError
from idiolect.report.progress import Display
from idiolect.study.analyse.results import Results
from idiolect.study.run import launch as study
from idiolect.study.spec.experiment import Experiment
from idiolect.study.store.store import RunRow, Store


class Answering(Display):
    """A display that also prints each comparison's headline when its last run has ended, before the others end."""

    def __init__(self, experiment: Experiment, quiet: bool, folder: Path) -> None:
        super().__init__(experiment, quiet, folder=folder)
        self.experiment, self.out = experiment, folder
        self.open = {cell.id: len(cell.methods) * experiment.seeds for cell in experiment.cells}

    def finished(self, row: RunRow) -> None:
        """Show that a run has ended; after the last one of a cell, its answer."""
        super().finished(row)
        if row.cell not in self.open:
            return
        self.open[row.cell] -= 1
        # A single comparison's answer comes with its report, and the last one's as well.
        if self.open[row.cell] == 0 and any(self.open.values()) and not self.quiet:
            self.answer(row.cell)

    def answer(self, cell: str) -> None:
        """Print a comparison's title and headline."""
        from idiolect.report.terminal import in_short  # here: a single comparison does not need them
        from idiolect.report.view.from_store import view_of

        try:
            with Store(self.out, create=False) as store:
                (part,) = view_of(Results(store, self.experiment.only((cell,))), clients=False).parts
        except IdiolectError:  # the report will say what is wrong
            return
        self.console.print(in_short(part), soft_wrap=True)


def launch(
    experiment: Experiment,
    out: str | Path,
    *,
    command: str = "",
    quiet: bool = False,
    figures: bool = True,
    **options: Any,
) -> Results:
    """Run an experiment. figures: write the report and its figures.

    `study.launch.launch` explains the other options.
    """

    def report(results: Results) -> None:
        from idiolect.report.page import write_report  # here: matplotlib loads slowly, and workers never draw

        write_report(results, Path(out), command)

    watcher = Answering(experiment, quiet, Path(out))
    return study.launch(
        experiment, out, command=command, watcher=watcher, report=report if figures else None, **options
    )
