"""The progress of an experiment's runs, or of a sweep: on a terminal as bars, else as plain lines."""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from idiolect.study.engine import run_id
from idiolect.study.experiment import Experiment
from idiolect.study.recording import Progress as RunProgress
from idiolect.study.store import RunRow

_LONGEST_NAME = 36
_MEMORY = 600.0
"""The speed is an average over this many seconds."""


class SpeedColumn(ProgressColumn):
    """Rounds a second, as rich estimates them from the work of this process."""

    def render(self, task: Task) -> Text:
        """Show the speed; nothing until there is an estimate."""
        return Text(f"{task.speed:.1f} rounds/s" if task.speed else "", style="progress.data.speed")


class Display:
    """Progress of all runs: one bar for all of them with the time left, and one line for each running one.

    Without a terminal: one line for each finished run. get_time: a clock in seconds.
    """

    def __init__(
        self,
        experiment: Experiment,
        quiet: bool = False,
        console: Console | None = None,
        get_time: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = console or Console(stderr=True)
        self.live = self.console.is_terminal and not quiet
        self.quiet = quiet
        self.rounds = {
            run_id(cell.id, method.title, seed): cell.rounds
            for cell in experiment.cells
            for method in cell.methods
            for seed in experiment.seed_list
        }
        self.done: dict[str, int] = {}
        self.over: set[str] = set()
        room = min(_LONGEST_NAME, max(12, self.console.width * 3 // 10))
        self.width = min(room, max([10, *(len(name) for name in self.rounds)]))
        name = TextColumn("{task.description}", table_column=Column(width=self.width, no_wrap=True))
        bar = BarColumn(8, table_column=Column(width=8))
        self.everything = Progress(
            *(name, bar, MofNCompleteColumn(), *_times(), SpeedColumn(table_column=Column(no_wrap=True))),
            console=self.console,
            get_time=get_time,
            speed_estimate_period=_MEMORY,
        )
        self.runs = Progress(
            *(name, bar, MofNCompleteColumn()),
            TextColumn("{task.fields[info]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
            console=self.console,
            get_time=get_time,
            expand=True,
        )
        self.total = self.everything.add_task("all rounds", total=max(1, sum(self.rounds.values())))
        self.tasks: dict[str, TaskID] = {}

    def shown(self) -> AbstractContextManager[object]:
        """A context manager: the bars are on the screen inside it."""
        if not self.live:
            return nullcontext()
        return Live(Group(self.everything, self.runs), console=self.console, transient=True)

    def progress(self, name: str, progress: RunProgress) -> None:
        """Show the progress of a run."""
        if name in self.over:
            return
        if name not in self.tasks:
            self.tasks[name] = self.runs.add_task(self._short(name), total=progress.rounds, info="")
        scores = "  ".join(f"{model} {short(value)}" for model, value in progress.scores.items())
        self.runs.update(self.tasks[name], completed=progress.round, info=scores or "compiling")
        self._reach(name, progress.round)

    def finished(self, row: RunRow) -> None:
        """Show that a run has ended."""
        rounds = self.rounds.get(row.id, 0)
        self._reach(row.id, min(row.round, rounds))
        self._skip(rounds - self.done[row.id])  # the rounds after a divergence
        self.done[row.id] = rounds
        self.over.add(row.id)
        if row.id in self.tasks:
            self.runs.remove_task(self.tasks.pop(row.id))
        if row.status == "diverged":
            self.console.print(Text(f"{row.id}: {row.message}", style="red"), soft_wrap=True)
        elif not self.live and not self.quiet:
            share = sum(self.done.values()) / max(sum(self.rounds.values()), 1)
            _print(share, f"{row.id}: {row.round} rounds in {row.seconds:.1f} s")

    def _short(self, name: str) -> str:
        """Shorten a name to fit; its end stays, where runs differ."""
        return name if len(name) <= self.width else "…" + name[-self.width + 1 :]

    def _reach(self, name: str, round: int) -> None:
        """Count a run's rounds; those that were done before this launch do not count for the speed."""
        if name in self.done:
            self.everything.advance(self.total, round - self.done[name])
        else:
            self._skip(round)
        self.done[name] = round

    def _skip(self, rounds: int) -> None:
        """Count rounds that this process did not run, without changing the speed."""
        self.everything.tasks[0].completed += rounds


class SweepDisplay:
    """Progress of a sweep: one bar with the time left; without a terminal a line at each tenth."""

    def __init__(self, console: Console | None = None, get_time: Callable[[], float] = time.monotonic) -> None:
        self.console = console or Console(stderr=True)
        self.bar = Progress(
            *(TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), *_times()),
            console=self.console,
            transient=True,
            get_time=get_time,
            speed_estimate_period=_MEMORY,
        )
        self.task = self.bar.add_task("compiling", total=1.0)
        self.tenths = 0

    def shown(self) -> AbstractContextManager[object]:
        """A context manager: the bar is on the screen inside it."""
        return self.bar if self.console.is_terminal else nullcontext()

    def progress(self, text: str, share: float) -> None:
        """Show what is running, and the share of the sweep that is done."""
        self.bar.update(self.task, description=text, completed=share)
        tenths = int(share * 10 + 1e-9)
        if tenths != self.tenths and not self.console.is_terminal:
            _print(share, text)
        self.tenths = tenths


def _times() -> list[ProgressColumn]:
    """The columns of the elapsed and the remaining time."""
    return [TimeElapsedColumn(), TextColumn("+"), TimeRemainingColumn(compact=True), TextColumn("left")]


def _print(share: float, text: str) -> None:
    print(f"[{share:4.0%}] {text}", file=sys.stderr, flush=True)


def short(score: float) -> str:
    """Format a score in few characters."""
    return f"{score:.3f}" if abs(score) < 100 else f"{score:.4g}"
