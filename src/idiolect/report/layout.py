"""How a panel of curves is laid out, for pictures and for the page alike: its axis, the lines drawn, which coincide.

Nothing here draws: `courses` and the page's scripts do.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from idiolect.metrics.base import Metric
from idiolect.report.view.parts import Part, Quantity

# Okabe and Ito's colours, distinct for every common kind of colour blindness; yellow is too pale for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES: dict[str, tuple[float, ...]] = {"personal": (), "adapted": (), "global": (5, 2), "local": (1.2, 1.4)}
OTHER_DASHES: tuple[tuple[float, ...], ...] = ((6, 1.5, 1, 1.5), (6, 1.5, 1, 1.5, 1, 1.5), (3, 3))
"""Lengths on and off, in widths of the line."""
NOT_CHOSEN, OTHERS = "not chosen", "others"
MOST = 16  # lines in colour that a panel of a report can have
SETTLED = 0.25  # rounds before this share of all rounds count as the start
_CROWDED = 1 / 3  # lines are left outside if the others need less than this share of the axis
_OUTSIDE = 2  # lines in colour that may be left outside, at most
_NEAR = 0.005  # of the axis: about half a line's width
_SAME = 0.8  # of the rounds that the axis shows
_SEEN = 0.5  # of all rounds


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

    def in_grey(self) -> "Course":
        """The same line as one that is not in colour."""
        return Course(self.method, self.model, self.x, self.mean, np.full(len(self.x), np.nan), muted=True)


def dashes_of(lines: Sequence[tuple[str, str]]) -> dict[str, tuple[float, ...]]:
    """The dashes of each model. lines: (method, model).

    Models without an entry in `DASHES` get unused dashes, the plainest first; so does `adapted` if a method also has
    `personal`.
    """
    models = tuple(dict.fromkeys(model for _, model in lines))
    both = any((method, "personal") in lines and model == "adapted" for method, model in lines)
    fixed = {name: dash for name, dash in DASHES.items() if name in models and not (both and name == "adapted")}
    free = [dash for dash in dict.fromkeys(DASHES.values()) if dash not in fixed.values()] + list(OTHER_DASHES)
    return fixed | {model: free[i % len(free)] for i, model in enumerate(m for m in models if m not in fixed)}


@dataclass(frozen=True)
class Layout:
    """A panel. courses: the lines drawn, in the units that are shown; left_out: the others of its quantity.

    ends: of the axis, by the lines drawn. beyond: lines that lie outside it; stacks: lines that lie on each other.
    """

    courses: tuple["Course", ...]
    left_out: tuple["Course", ...]
    crowd: "Crowd"
    ends: tuple[float, float]
    unit: float = 1

    @property
    def every(self) -> tuple["Course", ...]:
        """All lines of the quantity."""
        return (*self.courses, *self.left_out)

    @property
    def domain(self) -> list[float]:
        """The ends of the axis in the units of the scores."""
        return [end / self.unit for end in self.ends]

    @property
    def beyond(self) -> list["Beyond"]:
        """The lines of the quantity that lie below the axis, and those above."""
        return outside(self.every, self.ends) if self.every else []

    @property
    def stacks(self) -> list[list["Course"]]:
        """The lines of the quantity, those that coincide in one group."""
        return stacks(self.every, self.ends)


def layout_of(
    part: Part, kind: str, models: Sequence[str] = (), most: int = MOST, xmax: float | None = None
) -> Layout:
    """Lay out the courses of one kind of quantity: of the part's methods and models that are drawn.

    models: these only, else those that the part draws. xmax: the last round. The lines drawn are chosen by the test
    scores, so that all panels of a part have the same ones.
    """
    scores, courses = (_courses(part, name, models, xmax) for name in ("score", kind))
    local = part.alone[0] if part.alone else ""
    crowd = thinned(scores, part.muted, part.metric, most, local)
    chosen = [_muted(c, crowd) for c in courses if (c.method, c.model) in crowd.lines]
    others = _courses(part, kind, (), xmax, every=True)
    drawn = {(c.method, c.model) for c in chosen}
    rising = part.metric.higher and kind in ("score", "validation")
    known = [course for course in chosen or others if len(course.x)]
    ends = limits(known, rising=rising) if known else (0.0, 1.0)
    if kind in ("score", "validation"):  # no axis shows values that no score can have
        ends = max(ends[0], part.metric.bounds[0]), min(ends[1], part.metric.bounds[1])
    left_out = tuple(_muted(c, crowd) for c in others if (c.method, c.model) not in drawn and len(c.x))
    unit = 1 if "loss" in kind else part.metric.unit
    return Layout(tuple(chosen), left_out, crowd, ends, unit)


def _courses(
    part: Part, kind: str, models: Sequence[str], xmax: float | None, *, every: bool = False
) -> list[Course]:
    """The lines of a quantity. every: also of models that are not drawn, and of methods of which no run has ended."""
    methods, own = part.only
    wanted = models or own or part.draw
    quantity = next((each for each in part.quantities if each.kind == kind), Quantity(kind, "", False, ()))
    unit, bounds = (1, (-np.inf, np.inf)) if "loss" in kind else (part.metric.unit, part.metric.bounds)
    found: list[Course] = []
    for course in quantity.courses:
        method, model = course.key
        if every or (course.ended and (not methods or method in methods) and (not wanted or model in wanted)):
            keep = slice(None) if xmax is None else course.rounds <= xmax
            rounds, mean, half = (array[keep] for array in (course.rounds, course.mean, course.half))
            found.append(
                Course(method, model, rounds, unit * mean, unit * half, bounds=bounds, muted=method in part.muted)
            )
    return found


def _muted(course: Course, crowd: "Crowd") -> Course:
    """The line, in grey if it is one of those that a crowded panel has in grey."""
    return course if course.muted or course.method not in crowd.muted else course.in_grey()


@dataclass(frozen=True)
class Crowd:
    """What is drawn of a cell's lines. muted: methods in grey, `grey` in the legend; `told`: the caption's words."""

    lines: frozenset[tuple[str, str]]
    muted: frozenset[str]
    grey: str = NOT_CHOSEN
    told: str = ""


def thinned(courses: Sequence[Course], muted: Collection[str], metric: Metric, most: int, local: str = "") -> Crowd:
    """Leave lines out of a panel that would have more than `most` in colour.

    First each method keeps only its first named model; then all but the methods with the best last scores, and
    `local`, the title of local training, are grey. courses: of test scores, each method's first model first. muted:
    methods that are grey already.
    """
    lines = [(course.method, course.model) for course in courses]
    first: dict[str, str] = {}
    for method, model in lines:
        first.setdefault(method, model)
    told: list[str] = []
    coloured = [line for line in lines if line[0] not in muted]
    if len(coloured) > most:
        kept = [line for line in lines if first[line[0]] == line[1]]
        if len(kept) < len(lines):
            told.append(f"drawn: each method's first model ({len(lines) - len(kept)} other lines left out)")
        lines = kept
    grey = NOT_CHOSEN
    coloured = [line for line in lines if line[0] not in muted]
    if len(coloured) > most:
        last = {course.method: course.mean[-1] for course in courses if first[course.method] == course.model}
        candidates = [method for method, _ in coloured]
        ranked = sorted(candidates, key=lambda method: _rank(float(last[method]), metric))
        best = {*ranked[: len(COLOURS)], *(method for method in candidates if method == local)}
        told.append(
            f"in colour: the {len(COLOURS)} methods with the best last score" + (", and Local" * (local in best))
        )
        grey = f"{NOT_CHOSEN}, or {OTHERS}" if muted else OTHERS
        muted = {*muted, *(method for method in candidates if method not in best)}
    return Crowd(frozenset(lines), frozenset(muted), grey, "; ".join(told))


def _rank(score: float, metric: Metric) -> tuple[bool, float]:
    return score != score, -score if metric.higher else score


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
    return bool(enough and (close & seen).sum() >= _SAME * seen.sum())
