"""Draw the lines of a panel so that those which coincide are all seen, and mark those outside the axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from idiolect.report.layout import SETTLED, Course, outside, stacks
from idiolect.report.looks import Looks
from idiolect.report.style import PALE, REPORT, stripes


@dataclass(frozen=True)
class Place:
    """A line's place among those that coincide, the first below. twin: one below it has its colour."""

    number: int = 0
    of: int = 1
    twin: bool = False


ALONE = Place()


def look_of(course: Course, looks: Looks, place: Place = ALONE) -> dict[str, Any]:
    """The line's colour, dashes and width: its own style, or dashes between those of the lines below it."""
    line = looks.style.line
    if course.muted:
        muted = 0.8 * line / REPORT.line
        return {"color": PALE, "linestyle": looks.dashes(course.model), "linewidth": muted, "zorder": 1.5}
    width = 2 * line if place.twin else line
    dashes = stripes(place.number, place.of, width) if place.number else looks.dashes(course.model)
    return {"color": looks.colour(course.method, course.model), "linestyle": dashes, "linewidth": width}


def draw_line(course: Course, axes: Axes, looks: Looks, *, dotted: bool, place: Place = ALONE) -> None:
    """Draw the line and its band. dotted: mark every point, even if the method needs no marker."""
    marker = looks.marker(course.method) if not course.muted else ""
    apart = max(1, len(course.x) // 8)
    first = looks.methods.index(course.method) % apart if looks.style.marked and not course.muted else 0
    rings: dict[str, Any] = {"markerfacecolor": "none"} if place.number else {}
    axes.plot(
        course.x,
        course.mean,
        marker=marker or ("o" if dotted else ""),
        markersize=looks.style.scale * (4 + 3 * place.number),
        markevery=1 if dotted else (first, apart),
        label=looks.name(course.method, course.model),
        **look_of(course, looks, place),
        **rings,
    )
    if course.banded:
        colour = looks.colour(course.method, course.model)
        axes.fill_between(course.x, course.low, course.high, color=colour, alpha=0.15, linewidth=0)


def draw(
    axes: Axes, courses: Sequence[Course], looks: Looks, ends: tuple[float, float], *, dotted: bool = False
) -> dict[str, tuple[Line2D, ...]]:
    """Draw lines so that those that coincide are all seen; return name lines -> handles of these, for the legend.

    ends: the axis's. dotted: mark every point; the only point of a line is always marked.
    """
    for course in courses:
        if course.muted:
            draw_line(course, axes, looks, dotted=dotted or len(course.x) == 1)
    entries: dict[str, tuple[Line2D, ...]] = {}
    place_of: dict[int, Place] = {}
    for group in stacks(courses, ends):
        colours = [looks.colour(course.method, course.model) for course in group]
        places = [Place(i, len(group), colour in colours[:i]) for i, colour in enumerate(colours)]
        place_of |= {id(course): place for course, place in zip(group, places, strict=True)}
        if len(group) > 1:
            text = "\n".join(looks.name(course.method, course.model) for course in group)
            lines = [Line2D([], [], **look_of(c, looks, place)) for c, place in zip(group, places, strict=True)]
            entries[text] = tuple(lines)
    for course in courses:
        if not course.muted:
            draw_line(course, axes, looks, dotted=dotted or len(course.x) == 1, place=place_of[id(course)])
    return entries


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
