"""Run an experiment with a progress display, and write its report."""

from pathlib import Path
from typing import Any

from idiolect.report.progress import Display
from idiolect.study.analyse.results import Results
from idiolect.study.run import launch as study
from idiolect.study.spec.experiment import Experiment


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

    watcher = Display(experiment, quiet, folder=Path(out))
    return study.launch(
        experiment, out, command=command, watcher=watcher, report=report if figures else None, **options
    )
