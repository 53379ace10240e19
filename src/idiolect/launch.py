"""From an experiment to its report: run what is missing, show progress, write tables, figures and models."""

import sys
import time
from pathlib import Path
from typing import Any

import equinox as eqx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from idiolect.config import Experiment
from idiolect.data.federated import FederatedData
from idiolect.errors import DivergedError
from idiolect.experiment import Workbench, claim, groups, run_id, run_serial
from idiolect.fit import Progress as RunProgress
from idiolect.parallel import default_jobs, run_parallel, use_compilation_cache
from idiolect.results import Results
from idiolect.store import RunRow, Store


class Display:
    """Progress of all runs: one bar for everything with the time left, one line for each run at work.

    Without a terminal: one line for each finished run.
    """

    def __init__(self, experiment: Experiment, quiet: bool) -> None:
        self.console = Console(stderr=True)
        self.live = self.console.is_terminal and not quiet
        self.quiet = quiet
        self.rounds = {
            run_id(cell.id, method.title, seed): cell.rounds
            for cell in experiment.cells
            for method in cell.methods
            for seed in experiment.seed_list
        }
        self.done: dict[str, int] = {}
        self.already = 0
        self.started = time.monotonic()
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[info]}"),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.live,
        )
        self.total = self.bars.add_task("all rounds", total=sum(self.rounds.values()), info="")
        self.tasks: dict[str, TaskID] = {}

    def progress(self, name: str, progress: RunProgress) -> None:
        """Show where a run stands."""
        self.done[name] = progress.round
        if name not in self.tasks:
            self.tasks[name] = self.bars.add_task(f"  {name}", total=progress.rounds, info="")
        scores = "  ".join(f"{model} {value:.4f}" for model, value in progress.scores.items())
        info = f"{progress.rate:6.1f} rounds/s  {scores}"
        self.bars.update(self.tasks[name], completed=progress.round, info=info)
        if progress.round >= progress.rounds:
            self.bars.remove_task(self.tasks.pop(name))
        self._total()

    def finished(self, row: RunRow) -> None:
        """Note a finished run."""
        if row.id not in self.done:
            self.already += self.rounds.get(row.id, 0)
        self.done[row.id] = self.rounds.get(row.id, 0)
        if row.id in self.tasks:
            self.bars.remove_task(self.tasks.pop(row.id))
        self._total()
        if row.status == "diverged":
            self.console.print(Text(f"{row.id}: {row.message}", style="red"))
        elif not self.live and not self.quiet:
            count = f"[{sum(self.done.values()) / max(sum(self.rounds.values()), 1):4.0%}]"
            print(f"{count} {row.id}: {row.round} rounds in {row.seconds:.1f} s", file=sys.stderr, flush=True)

    def _total(self) -> None:
        done = sum(self.done.values())
        fresh, elapsed = done - self.already, time.monotonic() - self.started
        left = (sum(self.rounds.values()) - done) * elapsed / fresh if fresh > 0 else None
        info = f"{fresh / elapsed:6.1f} rounds/s  " + (f"{left:.0f} s left" if left is not None else "")
        self.bars.update(self.total, completed=done, info=info)


def launch(
    experiment: Experiment,
    out: str | Path,
    *,
    command: str = "",
    folder: str | None = None,
    jobs: int | None = None,
    data: FederatedData | None = None,
    model: eqx.Module | None = None,
    save_models: str = "first",
    debug: bool = False,
    quiet: bool = False,
    figures: bool = True,
) -> Results:
    """Run what the folder does not have yet, then write the report; returns the results.

    folder: where data sets that are read from files lie. save_models: client models of the "first" seed, of
    "all", or "none". data, model: objects in place of specifications; these run in this process.
    Raises `DivergedError` after everything else is done and written, if any run diverged.
    """
    out = Path(out)
    store = Store(out)
    claim(store, experiment)
    use_compilation_cache()
    seeds = {"first": experiment.seed_list[:1], "all": experiment.seed_list, "none": ()}[save_models]
    options: dict[str, Any] = {"folder": folder, "save_models": tuple(seeds), "debug": debug}
    work = groups(experiment)
    count = jobs if jobs is not None else min(default_jobs(), len(work) * experiment.seeds)
    display = Display(experiment, quiet)
    with display.bars:
        if count > 1 and data is None and model is None and not debug:
            run_parallel(
                out,
                experiment,
                work,
                jobs=count,
                options=options,
                on_progress=display.progress,
                on_done=display.finished,
            )
        else:
            bench = Workbench(store, data=data, model=model, **options)
            run_serial(bench, experiment, work, display.progress, display.finished)
    results = Results(store, experiment)
    if figures:
        from idiolect.report.page import write_report  # here: worker processes never draw, and matplotlib is slow

        write_report(results, out, command)
    return results


def raise_diverged(results: Results) -> None:
    """Raise the first divergence among the experiment's runs, if there is any."""
    for row in results.diverged():
        raise DivergedError(row.message, round=row.round, client=None, stage="training")
