"""The lines of a panel: their values, how they are drawn, and which of them coincide."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from idiolect.metrics.base import Metric
from idiolect.report.looks import Looks
from idiolect.report.style import PALE, REPORT, stripes
from idiolect.study.analyse.outcomes import Curve

_NEAR = 0.005  # of the axis: about half a line's width
_MOST = 0.8  # of the rounds that the axis shows
_SEEN = 0.5  # of all rounds


@dataclass(frozen=True)
class Place:
    """A line's place among those that coincide, the first below. twin: one below it has its colour."""

    number: int = 0
    of: int = 1
    twin: bool = False


ALONE = Place()


class Course:
    """One line of a panel: x values, means, and the band of their 95 % intervals around them.

    half: half of each interval's width, NaN for a single seed. bounds: the possible values, where bands end.
    muted: a setting that was not chosen, drawn thin and grey.
    """

    def __init__(
        self,
        method: str,
        model: str,
        x: np.ndarray,
        mean: np.ndarray,
        half: np.ndarray,
        *,
        bounds: tuple[float, float] = (-np.inf, np.inf),
        muted: bool = False,
    ) -> None:
        self.method, self.model, self.x, self.mean, self.muted = method, model, x, mean, muted
        self.banded = bool(np.isfinite(half).any()) and not muted
        spread = np.nan_to_num(half) if self.banded else np.zeros(len(mean))
        self.low, self.high = np.maximum(mean - spread, bounds[0]), np.minimum(mean + spread, bounds[1])

    @classmethod
    def score(cls, curve: Curve, metric: Metric, muted: Collection[str] = ()) -> "Course":
        """Make a line of a curve's scores by a metric, as they are read."""
        score, half = metric.unit * curve.score, metric.unit * curve.score_ci95
        muted_ = curve.method in muted
        return cls(curve.method, curve.model, curve.rounds, score, half, bounds=metric.bounds, muted=muted_)

    @classmethod
    def loss(cls, curve: Curve, muted: Collection[str] = ()) -> "Course":
        """Make a line of a curve's losses."""
        muted_ = curve.method in muted
        return cls(curve.method, curve.model, curve.rounds, curve.loss, curve.loss_ci95, muted=muted_)

    def look(self, looks: Looks, place: Place = ALONE) -> dict[str, Any]:
        """The line's colour, dashes and width: its own style, or dashes between those of the lines below it."""
        line = looks.style.line
        if self.muted:
            muted = 0.8 * line / REPORT.line
            return {"color": PALE, "linestyle": looks.dashes(self.model), "linewidth": muted, "zorder": 1.5}
        width = 2 * line if place.twin else line
        dashes = stripes(place.number, place.of, width) if place.number else looks.dashes(self.model)
        return {"color": looks.colour(self.method, self.model), "linestyle": dashes, "linewidth": width}

    def draw(self, axes: Axes, looks: Looks, *, dotted: bool, place: Place = ALONE) -> None:
        """Draw the line and its band. dotted: mark every point, even if the method needs no marker."""
        marker = looks.marker(self.method) if not self.muted else ""
        apart = max(1, len(self.x) // 8)
        first = looks.methods.index(self.method) % apart if looks.style.marked and not self.muted else 0
        rings: dict[str, Any] = {"markerfacecolor": "none"} if place.number else {}
        axes.plot(
            self.x,
            self.mean,
            marker=marker or ("o" if dotted else ""),
            markersize=looks.style.scale * (4 + 3 * place.number),
            markevery=1 if dotted else (first, apart),
            label=looks.name(self.method, self.model),
            **self.look(looks, place),
            **rings,
        )
        if self.banded:
            colour = looks.colour(self.method, self.model)
            axes.fill_between(self.x, self.low, self.high, color=colour, alpha=0.15, linewidth=0)


def stacks(courses: Sequence[Course], ends: tuple[float, float]) -> list[list[Course]]:
    """Group the lines in colour: those of a group lie on its first line in most of the rounds that the axis shows."""
    groups: list[list[Course]] = []
    for course in courses:
        if not course.muted:
            found = next((group for group in groups if _coincide(group[0], course, ends)), None)
            groups.append([course]) if found is None else found.append(course)
    return groups


def _coincide(one: Course, other: Course, ends: tuple[float, float]) -> bool:
    _, i, j = np.intersect1d(one.x, other.x, return_indices=True)
    a, b = one.mean[i], other.mean[j]
    inside = [(ends[0] <= values) & (values <= ends[1]) for values in (a, b)]  # False for NaN
    seen = inside[0] | inside[1]
    close = np.abs(a - b) <= _NEAR * (ends[1] - ends[0])
    enough = seen.sum() >= max(1.0, _SEEN * max(len(one.x), len(other.x)))
    return bool(enough and (close & seen).sum() >= _MOST * seen.sum())


def draw(
    axes: Axes, courses: Sequence[Course], looks: Looks, ends: tuple[float, float], *, dotted: bool = False
) -> dict[str, tuple[Line2D, ...]]:
    """Draw lines so that those that coincide are all seen; return name lines -> handles of these, for the legend.

    ends: the axis's. dotted: mark every point; the only point of a line is always marked.
    """
    for course in courses:
        if course.muted:
            course.draw(axes, looks, dotted=dotted or len(course.x) == 1)
    entries: dict[str, tuple[Line2D, ...]] = {}
    place_of: dict[int, Place] = {}
    for group in stacks(courses, ends):
        colours = [looks.colour(course.method, course.model) for course in group]
        places = [Place(i, len(group), colour in colours[:i]) for i, colour in enumerate(colours)]
        place_of |= {id(course): place for course, place in zip(group, places, strict=True)}
        if len(group) > 1:
            text = "\n".join(looks.name(course.method, course.model) for course in group)
            lines = [Line2D([], [], **c.look(looks, place)) for c, place in zip(group, places, strict=True)]
            entries[text] = tuple(lines)
    for course in courses:
        if not course.muted:
            course.draw(axes, looks, dotted=dotted or len(course.x) == 1, place=place_of[id(course)])
    return entries
