"""The standing of runs on a terminal: a line for all of them, and one for each method with its score and hints."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from idiolect.report.standing import Line, Standing
from idiolect.report.trend import arrow, sparkline

LONGEST_NAME = 36
"""Characters of a name, at most."""
_ORDER = {"running": 0, "stopped": 1, "diverged": 2, "waiting": 3, "done": 4}


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
        return Text("compiling" if compiling else line.status, style="dim")
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
