"""The limits of a panel's axis: where the lines differ, even if some then lie outside; and which do."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from idiolect.report.courses import Course
from idiolect.report.looks import Looks

SETTLED = 0.25  # rounds before this share of all rounds count as the start
_CROWDED = 1 / 3  # lines are left outside if the others need less than this share of the axis
_OUTSIDE = 2  # lines in colour that may be left outside, at most


def limits(courses: Sequence[Course], *, rising: bool, settled: float = SETTLED) -> tuple[float, float]:
    """Choose y limits that show the differences between lines.

    The lines' steep start may lie outside, and so may the one or two worst lines if they would press the others
    together. More than half of the lines, and at least two that differ, are always inside. rising: higher is better.
    settled: the share of all rounds that is the start.
    """
    start = _start(courses, settled)
    shown = _shown([c for c in courses if np.isfinite(_extent(c, start)).all()], start, rising)
    if not shown:
        return 0.0, 1.0
    bottom, top = _span(shown, start, rising)
    full = _span(shown, -np.inf, rising)
    if top - bottom > 0.5 * (full[1] - full[0]):
        bottom, top = full
    margin = 0.06 * (top - bottom) or 0.01 * abs(top) or 0.01
    return bottom - margin, top + margin


@dataclass(frozen=True)
class Beyond:
    """The lines that lie wholly, or partly, below or above the axis after the start."""

    word: str
    wholly: list[Course]
    partly: list[Course]


def outside(courses: Sequence[Course], ends: tuple[float, float], settled: float = SETTLED) -> list[Beyond]:
    """Find the lines below the limits, and those above."""
    start = _start(courses, settled)
    found: list[Beyond] = []
    for word, beyond in (("below", lambda v: v < ends[0]), ("above", lambda v: v > ends[1])):
        wholly: list[Course] = []
        partly: list[Course] = []
        for course in courses:
            values = course.mean[_settled(course, start)]
            hidden = beyond(values[np.isfinite(values)])
            edge = course.low if word == "below" else course.high
            if hidden.size and hidden.all():
                wholly.append(course)
            elif beyond(edge[_settled(course, start)]).any():
                partly.append(course)
        found.append(Beyond(word, wholly, partly))
    return found


def outside_text(
    courses: Sequence[Course], ends: tuple[float, float], looks: Looks, axis: str, settled: float = SETTLED
) -> str:
    """Name the lines that lie outside the limits after the start; empty if none does. axis: what it shows."""
    parts: list[str] = []
    for found in outside(courses, ends, settled):
        for how, lines in (("", found.wholly), ("partly ", found.partly)):
            parts += [f"{how}{found.word} the axis of {axis}: {_names(lines, looks)}"] if lines else []
    return "; ".join(parts)


def arrows(
    axes: Axes, courses: Sequence[Course], ends: tuple[float, float], looks: Looks, settled: float = SETTLED
) -> None:
    """Mark each line in colour that lies wholly outside the limits with an arrow of its colour at that end."""
    size = 7 * looks.style.scale
    for found in outside(courses, ends, settled):
        marker, height = ("v", 0.0) if found.word == "below" else ("^", 1.0)
        lines = [course for course in found.wholly if not course.muted]
        for number, course in enumerate(lines):
            axes.plot(
                [0.97 - 0.06 * number],
                [height],
                color=looks.colour(course.method, course.model),
                marker=marker,
                markersize=size,
                linestyle="none",
                transform=axes.transAxes,
                clip_on=False,
                zorder=5,
                label="_beyond",
            )


def _names(courses: Sequence[Course], looks: Looks) -> str:
    names = [looks.name(course.method, course.model) for course in courses if not course.muted]
    muted = len(courses) - len(names)
    return " and ".join(names + ([f"{muted} of the lines not chosen"] if muted else []))


def _start(courses: Sequence[Course], settled: float) -> float:
    """The first round after the start, common to all lines."""
    rounds = np.concatenate([course.x for course in courses])
    return float(rounds.min() + settled * (rounds.max() - rounds.min()))


def _settled(course: Course, start: float) -> np.ndarray:
    """Which of the line's rounds come after the start; all if none does."""
    after = course.x >= start
    return after if after.any() else np.ones(len(course.x), bool)


def _extent(course: Course, start: float) -> tuple[float, float]:
    """The lowest and highest value of the line with its band after the start; infinite the wrong way without any."""
    settled = _settled(course, start)
    low, high = course.low[settled], course.high[settled]
    lowest = np.min(low, initial=np.inf, where=np.isfinite(low))
    return float(lowest), float(np.max(high, initial=-np.inf, where=np.isfinite(high)))


def _span(courses: Sequence[Course], start: float, rising: bool) -> tuple[float, float]:
    """The range of the settled lines, on the better side also of their start."""
    ends = [_extent(course, start) for course in courses]
    everywhere = [_extent(course, -np.inf) for course in courses]
    if rising:
        return min(low for low, _ in ends), max(high for _, high in everywhere)
    return min(low for low, _ in everywhere), max(high for _, high in ends)


def _shown(courses: Sequence[Course], start: float, rising: bool) -> list[Course]:
    """Leave out the worst lines as long as the others then need much less of the axis."""
    worst = (lambda c: _extent(c, start)[0]) if rising else (lambda c: -_extent(c, start)[1])
    order = sorted(courses, key=worst)
    if not order:
        return order
    width, left = float(np.ptp(_span(order, start, rising))), 0
    for k in range(1, len(order)):
        out, rest = order[:k], order[k:]
        if len(rest) <= k or sum(not course.muted for course in out) > _OUTSIDE:
            break
        needed = float(np.ptp(_span(rest, start, rising)))
        if needed < _CROWDED * width and _distinct(rest, 1e-3 * width) > max(1, k - sum(c.muted for c in out)):
            width, left = needed, k
    return order[left:]


def _distinct(courses: Sequence[Course], near: float) -> int:
    """Count the lines, those that are everywhere within `near` of each other as one."""
    found: list[Course] = []
    for course in courses:
        if not any(course.mean.shape == c.mean.shape and np.allclose(course.mean, c.mean, 0, near) for c in found):
            found.append(course)
    return len(found)
