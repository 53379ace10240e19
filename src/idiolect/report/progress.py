"""The progress of an experiment's runs, or of a sweep: on a terminal as a live table, else as plain lines."""

import itertools
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from idiolect.core.errors import StoreError
from idiolect.core.repeating import repeating
from idiolect.report.standing import Line, Standing, arrow, sparkline, standing_of
from idiolect.study.run.following import FRESH, Follower, Pulse, end_pulse
from idiolect.study.run.recording import Progress as RunProgress
from idiolect.study.spec.experiment import Experiment, run_id
from idiolect.study.store.store import RunRow

COMPILING = "compiling, at first 10 to 30 s"
"""What is shown from the start of a program until its first round is done."""
LONGEST_NAME = 36
"""Characters of a name, at most."""
_ORDER = {"running": 0, "stopped": 1, "diverged": 2, "waiting": 3, "done": 4}


def reading(console: Console) -> AbstractContextManager[object]:
    """A context manager: on a terminal a line says that the data are being read, while the block runs."""
    return console.status("reading the data") if console.is_terminal else nullcontext()


def live(standing: Standing, console: Console, *, total: bool = True, room: int | None = None) -> RenderableType:
    """The display. total: with the line for all runs. room: lines on the screen; by default the console's height."""
    parts: list[RenderableType] = [_total(standing)] if total else []
    lines, hidden = fitting(standing.lines, (room or console.height) - 4)
    if lines:
        parts.append(_table(lines, len({line.cell for line in standing.lines}) > 1, console))
    parts += [Text(f"{line.method}: {text}", style=style) for line in lines for text, style in _below(line)]
    if hidden:
        parts.append(Text(f"and {hidden} more methods", style="dim"))
    return Group(*parts)


def fitting(lines: Sequence[Line], room: int) -> tuple[list[Line], int]:
    """(lines that the room has place for, in their order; how many are left out): those at work come first."""
    ranked, used, kept = sorted(range(len(lines)), key=lambda i: (_ORDER[lines[i].status], i)), 0, set[int]()
    for place in ranked:
        height = 1 + len(_below(lines[place]))
        if kept and used + height > max(room, 1):
            break
        used, kept = used + height, kept | {place}
    return [lines[place] for place in sorted(kept)], len(lines) - len(kept)


def _total(standing: Standing) -> Table:
    table = Table.grid(padding=(0, 1))
    words = [standing.text or standing.name, ProgressBar(standing.total or 1, standing.done, width=20)]
    if standing.total > 1:
        words.append(f"{standing.done:.0f}/{standing.total:.0f} rounds")
    if standing.speed and standing.total > 1:
        words.append(f"{standing.speed:.3g} rounds/s")
    if standing.left is not None and not standing.over:
        words.append(f"{clock(standing.left)} left")
    if not standing.alive:
        words.append("done" if standing.over else "stopped" if standing.begun else "has not begun")
    table.add_row(*words)
    return table


def _table(lines: Sequence[Line], cells: bool, console: Console) -> Table:
    names = {id(line): f"{line.cell}/{line.method}" if cells else line.method for line in lines}
    room = min(LONGEST_NAME, max(12, console.width * 3 // 10))
    width = min(room, max(len(name) for name in names.values()))
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=width, no_wrap=True)
    table.add_column(width=8)
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for line in lines:
        bar = ProgressBar(line.rounds or 1, line.done, width=8)
        rate = f"{line.rate:.3g}/s" if line.rate else ""
        left = clock(line.left) if line.left is not None else ""
        name = Text(_short(names[id(line)], width), style="bold" if line.status == "running" else "")
        table.add_row(name, bar, f"{line.done}/{line.rounds}", rate, left, _state(line, console.options.ascii_only))
    return table


def _state(line: Line, ascii_only: bool) -> Text:
    """The current scores with their trend, or why there are none."""
    if not line.scores:
        compiling = line.status == "running" and line.done == 0
        return Text(COMPILING if compiling else line.status, style="dim")
    text = Text()
    for model, course in line.scores.items():
        values = [value for _, value in course]
        text.append(f"{model} {short(values[-1])}")
        if not ascii_only and model == line.model:
            better = "green" if line.higher else "red"
            worse = "red" if line.higher else "green"
            trend = arrow(values)
            text.append(f" {trend}", style={"↑": better, "↓": worse}.get(trend, "dim"))
            text.append(f" {sparkline(values)}", style="cyan")
        text.append("  ")
    if line.runs > 1:
        text.append(f"seed {line.seed}, {line.ended} of {line.runs} done  ", style="dim")
    else:
        text.append("1 seed  ", style="dim")
    if line.status in ("stopped", "diverged") or (line.status == "done" and line.runs == 1):
        text.append(line.status, style="red" if line.status == "diverged" else "dim")
    return text


def _below(line: Line) -> list[tuple[str, str]]:
    """(text, style) of what is said under a method."""
    told = [(text, "yellow") for text in line.hints.values()]
    return [*told, (line.message, "red")] if line.message else told


def _short(name: str, width: int) -> str:
    """Shorten a name to fit; its end stays, where runs differ."""
    return name if len(name) <= width else "…" + name[-width + 1 :]


def short(score: float) -> str:
    """Format a score in few characters."""
    return f"{score:.3f}" if abs(score) < 10 else f"{score:.4g}"


def clock(seconds: float) -> str:
    """Format seconds: 0:07, 12:30, 2:05:00."""
    whole = int(seconds + 0.5)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


_MEMORY = 600.0
"""The speed is an average over this many seconds."""
_BEAT = 1.0
"""Seconds between two readings of the folder, at least."""
_SHARE = 20
"""Looks take at most 1/20 of the time, unless the pulse would become old."""


class SpeedColumn(ProgressColumn):
    """Rounds a second, as rich estimates them from the work of this process."""

    def render(self, task: Task) -> Text:
        """Show the speed; nothing until there is an estimate."""
        return Text(f"{task.speed:.1f} rounds/s" if task.speed else "", style="progress.data.speed")


class Display:
    """Progress of all runs: one bar for all of them with the time left, and a line for each method with its score.

    Until the first round is done, a line says that a program is compiled, and for how long. Without a terminal: that
    line, one line for each finished run, and each hint once. folder: where the runs are recorded, from which scores
    and hints are read, and where the pulse is written for other readers; None shows only rounds.
    get_time: a clock in seconds.
    """

    def __init__(
        self,
        experiment: Experiment,
        quiet: bool = False,
        console: Console | None = None,
        get_time: Callable[[], float] = time.monotonic,
        folder: Path | None = None,
    ) -> None:
        self.console = console or Console(stderr=True)
        self.live = self.console.is_terminal and not quiet
        self.quiet, self.folder = quiet, folder
        self.rounds = {
            run_id(cell.id, method.title, seed): cell.rounds
            for cell in experiment.cells
            for method in cell.methods
            for seed in experiment.seed_list
        }
        self.done: dict[str, int] = {}
        self.over: set[str] = set()
        self.at_work: dict[str, tuple[int, float]] = {}
        self.told: set[tuple[str, str, str]] = set()
        self.begun, self.moving = False, False
        self.follower = Follower(folder, experiment)
        bar = BarColumn(8, table_column=Column(width=8))
        self.everything = Progress(
            *(TextColumn("{task.description}"), bar, MofNCompleteColumn(), *_times()),
            SpeedColumn(table_column=Column(no_wrap=True)),
            console=self.console,
            get_time=get_time,
            speed_estimate_period=_MEMORY,
        )
        self.total = self.everything.add_task("all rounds", total=max(1, sum(self.rounds.values())))
        self.standing = standing_of(Follower(None, experiment).read(self.pulse()))

    @contextmanager
    def shown(self) -> Generator[object]:
        """A context manager: the display is on the screen, and the folder has a pulse, inside it."""
        screen = Live(get_renderable=self.view, console=self.console, transient=True) if self.live else nullcontext()
        with screen, _beating(self.folder, self.beat, self.pulse):
            yield self
        self.beat()

    def preparing(self) -> AbstractContextManager[object]:
        """A context manager: the data are read inside it, before there is a run to show."""
        return reading(self.console) if self.live else nullcontext()

    def view(self) -> RenderableType:
        """What is on the screen now."""
        task = self.everything.tasks[0]
        first: list[RenderableType] = (
            [] if self.moving else [Text(f"{COMPILING}: {clock(task.elapsed or 0.0)} so far")]
        )
        bar: list[RenderableType] = [self.everything] if self.moving or task.completed else []
        return Group(*first, *bar, live(self.standing, self.console, total=False))

    def pulse(self) -> Pulse:
        """How far the runs are, for others."""
        task = self.everything.tasks[0]
        total = float(task.total or 1)
        return Pulse(time.time(), task.elapsed or 0.0, task.completed, total, task.speed, dict(self.at_work))

    def beat(self) -> None:
        """Look at the folder: its scores, and hints, which are printed once each where there is no terminal."""
        if self.quiet:
            return
        with suppress(StoreError):
            self.standing = standing_of(self.follower.read(self.pulse()))
        if self.live:
            return
        for line in self.standing.lines:
            for kind, text in line.hints.items():
                if (line.cell, line.method, kind) not in self.told:
                    self.told.add((line.cell, line.method, kind))
                    print(f"hint: {line.cell}/{line.method}: {text}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line that stays, above the bars."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def progress(self, name: str, progress: RunProgress) -> None:
        """Show the progress of a run."""
        if name in self.over:
            return
        if not self.begun and not self.live and not self.quiet:
            print(COMPILING, file=sys.stderr, flush=True)
        self.begun = True
        self.at_work[name] = progress.round, progress.rate
        self._reach(name, progress.round)

    def finished(self, row: RunRow) -> None:
        """Show that a run has ended."""
        rounds = self.rounds.get(row.id, 0)
        self._reach(row.id, min(row.round, rounds))
        self._skip(rounds - self.done[row.id])  # the rounds after a divergence
        self.done[row.id] = rounds
        self.over.add(row.id)
        self.at_work.pop(row.id, None)
        if row.status == "diverged":
            self.console.print(Text(f"{row.id}: {row.message}", style="red"), soft_wrap=True)
        elif not self.live and not self.quiet:
            share = sum(self.done.values()) / max(sum(self.rounds.values()), 1)
            _print(share, f"{row.id}: {row.round} rounds in {row.seconds:.1f} s")

    def _reach(self, name: str, round: int) -> None:
        """Count a run's rounds; those that were done before this launch do not count for the speed."""
        if name in self.done:
            if round > self.done[name] and not self.moving:
                self.moving = True
                if not self.live and not self.quiet:
                    print(
                        f"first rounds done after {clock(self.everything.tasks[0].elapsed or 0.0)}", file=sys.stderr
                    )
            self.everything.advance(self.total, round - self.done[name])
        else:
            self._skip(round)
        self.done[name] = round

    def _skip(self, rounds: int) -> None:
        """Count rounds that this process did not run, without changing the speed."""
        self.everything.tasks[0].completed += rounds


class SweepDisplay:
    """Progress of a sweep: one bar with the time left; without a terminal a line at the start and at each tenth.

    folder: where it is recorded, whose pulse is written for others who look on. compiles: it begins with compiling.
    """

    def __init__(
        self,
        console: Console | None = None,
        get_time: Callable[[], float] = time.monotonic,
        folder: Path | None = None,
        compiles: bool = True,
    ) -> None:
        self.console, self.folder, self.compiles = console or Console(stderr=True), folder, compiles
        self.bar = Progress(
            *(TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), *_times()),
            console=self.console,
            transient=True,
            get_time=get_time,
            speed_estimate_period=_MEMORY,
        )
        self.task = self.bar.add_task(COMPILING if compiles else "", total=1.0)
        self.tenths = 0
        self.begun = False

    @contextmanager
    def shown(self) -> Generator[object]:
        """A context manager: the bar is on the screen, and the folder has a pulse, inside it."""
        screen: AbstractContextManager[object] = self.bar if self.console.is_terminal else nullcontext()
        with screen, _beating(self.folder, lambda: None, self.pulse):
            yield self

    def pulse(self) -> Pulse | None:
        """How far the sweep is, for others; None before it has begun, when its folder may still be refused."""
        if not self.begun:
            return None
        task = self.bar.tasks[0]
        return Pulse(time.time(), task.elapsed or 0.0, task.completed, 1.0, task.speed, text=task.description)

    def say(self, text: str) -> None:
        """Print a line that stays, above the bar."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def progress(self, text: str, share: float) -> None:
        """Show what is running, and the share of the sweep that is done."""
        text = f"{text}: {COMPILING}" if self.compiles and not share else text
        if not self.begun and not share and not self.console.is_terminal:
            _print(share, text)
        self.begun = True
        self.bar.update(self.task, description=text, completed=share)
        tenths = int(share * 10 + 1e-9)
        if tenths != self.tenths and not self.console.is_terminal:
            _print(share, text)
        self.tenths = tenths


@contextmanager
def _beating(folder: Path | None, beat: Callable[[], None], pulse: Callable[[], Pulse | None]) -> Generator[None]:
    """Call `beat` every second, and write the pulse into the folder every other one; it is removed at the end."""
    beats = itertools.count()

    def look() -> float:
        began = time.monotonic()
        beat()
        now = pulse() if folder is not None and next(beats) % 2 == 0 else None
        if folder is not None and now is not None:
            now.write(folder)
        return max(_BEAT, min(_SHARE * (time.monotonic() - began), FRESH / 4))

    try:
        with repeating(look, _BEAT):
            yield
    finally:
        if folder is not None:
            end_pulse(folder)


def _times() -> list[ProgressColumn]:
    """The columns of the elapsed and the remaining time."""
    return [TimeElapsedColumn(), TextColumn("+"), TimeRemainingColumn(compact=True), TextColumn("left")]


def _print(share: float, text: str) -> None:
    print(f"[{share:4.0%}] {text}", file=sys.stderr, flush=True)
