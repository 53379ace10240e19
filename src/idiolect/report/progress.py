"""Progress of an experiment's runs on a terminal, or as plain lines."""

import sys
import time
from contextlib import AbstractContextManager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from idiolect.study.engine import run_id
from idiolect.study.experiment import Experiment
from idiolect.study.loop import Progress as RunProgress
from idiolect.study.store import RunRow

_LONGEST_NAME = 36


class Display:
    """Progress of all runs: one bar for everything with the time left, one line for each run at work.

    Without a terminal: one line for each finished run.
    """

    def __init__(self, experiment: Experiment, quiet: bool = False, console: Console | None = None) -> None:
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
        self.began: dict[str, int] = {}  # rounds that were there when this process came to a run
        self.over: set[str] = set()
        self.started = time.monotonic()
        self.first: tuple[int, float] | None = None  # (rounds, time) when rounds began to come
        room = min(_LONGEST_NAME, max(12, self.console.width * 3 // 10))
        self.width = min(room, max([10, *(len(name) for name in self.rounds)]))
        self.bars = Progress(
            TextColumn("{task.description}", table_column=Column(width=self.width, no_wrap=True)),
            BarColumn(8, table_column=Column(width=8)),
            TextColumn("{task.fields[info]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
            console=self.console,
            transient=True,
            expand=True,
            disable=not self.live,
        )
        self.total = self.bars.add_task("all rounds", total=max(1, sum(self.rounds.values())), info="starting")
        self.tasks: dict[str, TaskID] = {}

    def shown(self) -> AbstractContextManager[object]:
        """The time in which the bars are on the screen."""
        return self.bars

    def progress(self, name: str, progress: RunProgress) -> None:
        """Show where a run stands."""
        if name in self.over:
            return
        self.done[name] = progress.round
        self.began.setdefault(name, progress.round)
        if name not in self.tasks:
            self.tasks[name] = self.bars.add_task(self._short(name), total=progress.rounds, info="")
        scores = "  ".join(f"{model} {short(value)}" for model, value in progress.scores.items())
        info = f"{progress.round}/{progress.rounds}  {scores or 'compiling'}"
        self.bars.update(self.tasks[name], completed=progress.round, info=info)
        self._total()

    def finished(self, row: RunRow) -> None:
        """Note a finished run."""
        rounds = self.rounds.get(row.id, 0)
        self.began.setdefault(row.id, rounds)
        self.done[row.id] = rounds
        self.over.add(row.id)
        if row.id in self.tasks:
            self.bars.remove_task(self.tasks.pop(row.id))
        self._total()
        if row.status == "diverged":
            self.console.print(Text(f"{row.id}: {row.message}", style="red"), soft_wrap=True)
        elif not self.live and not self.quiet:
            count = f"[{sum(self.done.values()) / max(sum(self.rounds.values()), 1):4.0%}]"
            print(f"{count} {row.id}: {row.round} rounds in {row.seconds:.1f} s", file=sys.stderr, flush=True)

    def _short(self, name: str) -> str:
        """A name that fits, with its end, where runs differ."""
        return name if len(name) <= self.width else "…" + name[-self.width + 1 :]

    def _total(self) -> None:
        everything, done = sum(self.rounds.values()), sum(self.done.values())
        fresh, now = done - sum(self.began.values()), time.monotonic()
        elapsed = clock(now - self.started)
        info = f"{done}/{everything}  {elapsed}"
        if self.first is None and fresh > 0:  # what came before was starting and compiling
            self.first = (fresh, now)
        if self.first is not None and fresh > self.first[0]:
            rate = (fresh - self.first[0]) / max(now - self.first[1], 1e-9)
            info = f"{done}/{everything}  {rate:.1f} rounds/s  {elapsed}, {clock((everything - done) / rate)} left"
        self.bars.update(self.total, completed=done, info=info)


def short(score: float) -> str:
    """A score in few characters."""
    return f"{score:.3f}" if abs(score) < 100 else f"{score:.4g}"


def clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
