"""Figures of methods: curves over rounds, scores across cells, diagnostics, and seconds per round."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from idiolect.core.errors import ConfigError
from idiolect.report import text
from idiolect.report.layout import COLOURS, SETTLED, Course, Layout, layout_of, limits, outside, stacks
from idiolect.report.style import (
    GREY,
    PALE,
    REPORT,
    Drawing,
    Looks,
    Style,
    beside,
    blank,
    caption,
    coincide_caption,
    headline,
    high,
    plain,
    seed_counts,
    seeds_text,
    shown_names,
    spread_caption,
    stripes,
    tidy,
)
from idiolect.report.view.parts import Part, Run
from idiolect.study.analyse.outcomes import Line
from idiolect.study.store.summary import half_widths


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


Panels = Literal["both", "score", "loss"]
_NARROW = 5.0  # inches, below which two panels stand above each other


@dataclass(frozen=True)
class Window:
    """The ends of the axes that a user asks for: rounds up to xmax, scores from ymin to ymax. None: by the lines."""

    xmax: float | None = None
    ymin: float | None = None
    ymax: float | None = None


WHOLE = Window()


def curves_figure(part: Part, models: Sequence[str] = (), style: Style = REPORT) -> Drawing:
    """Draw test score and training loss over rounds, for every method and named model (or for `models` only).

    Lines are means over seeds, bands their 95 % intervals. Settings that were not chosen on validation data are
    thin and grey. Without a train split there is one panel.
    """
    return panels_figure([part], models, style)


def panels_figure(
    parts: Sequence[Part],
    models: Sequence[str] = (),
    style: Style = REPORT,
    *,
    panels: Panels = "both",
    window: Window = WHOLE,
) -> Drawing:
    """Draw one row for each part: test score and, if any part has it, training loss; one legend for all.

    panels: these only. Where lines are too many to distinguish, the caption says which are drawn.
    """
    kinds = [kind for kind in ("score", "loss") if panels in ("both", kind)]
    rows = [[layout_of(part, kind, models, style.most, window.xmax) for kind in kinds] for part in parts]
    crowds = [row[0].crowd for row in rows]
    drawn = [course for row in rows for layout in row for course in layout.courses]
    if window.xmax is not None and drawn and not any(len(course.x) for course in drawn):
        raise ConfigError(f"no round up to {window.xmax:g} was evaluated; take a later last round (--xmax)")
    in_colour = {course.method for course in drawn if not course.muted}
    nowhere = {course.method for course in drawn} - in_colour
    grey = next((crowd.grey for crowd in crowds if crowd.muted), "")
    names = shown_names(parts)
    looks = Looks([(c.method, c.model) for c in drawn], names, nowhere, style, grey)
    columns = 2 if len(rows[0]) == 2 and any(row[1].courses for row in rows) else 1
    stacked = columns == 2 and len(parts) == 1 and style.width is not None and style.width < _NARROW
    down, across = (2, 1) if stacked else (len(parts), columns)
    figure = blank(2.2 + 4.2 * across, (3.3 if down > 1 else 3.7) * down + 0.4, style)
    grid = figure.subplots(down, across, squeeze=False)
    stacks: dict[str, tuple[Line2D, ...]] = {}
    notes: list[str] = []
    for axes, part, row in zip(grid.T if stacked else grid, parts, rows, strict=True):
        labels = {"score": text.score_axis(part.metric), "loss": "training loss"}
        for panel, layout, kind in zip(axes, row, kinds, strict=False):
            given, label = window if kind == "score" or panels == "loss" else WHOLE, labels[kind]
            stacks |= _panel(panel, layout, looks, given)
            panel.set_ylabel(label, fontsize=style.label)
            where = label.removesuffix(", %") + (f" ({part.title})" if len(parts) > 1 else "")
            notes += [outside_text(layout.courses, panel.get_ylim(), looks, where)] if layout.courses else []
        if len(parts) > 1:
            axes[0].set_title(plain(part.title), fontsize=style.label, loc="left", fontweight="bold")
    for axes in grid[-1]:
        axes.set_xlabel("round", fontsize=style.label)
    if len(parts) == 1 and style.titled:
        figure.suptitle(plain(parts[0].title), fontsize=style.title, fontweight="bold", x=0.01, ha="left")
    if drawn:
        looks.legend(figure, stacks)
        counts = seed_counts(parts)
        spread = spread_caption("lines", "bands", counts, len(parts[0].seeds))
        chosen = "in colour: the setting of each method that was chosen on validation data"
        tuned = any(part.muted for part in parts)
        alike = "" if style.beside else coincide_caption(stacks)
        caption(figure, [spread, alike, chosen if tuned else "", *dict.fromkeys(c.told for c in crowds), *notes])
    return figure


def _panel(axes: Axes, layout: Layout, looks: Looks, window: Window) -> dict[str, tuple[Line2D, ...]]:
    tidy(axes, looks.style)
    courses = [course for course in layout.courses if len(course.x)]
    if not courses:
        size = looks.style.label
        axes.text(0.5, 0.5, "no finished run", ha="center", va="center", transform=axes.transAxes, fontsize=size)
        return {}
    low, high = layout.ends
    ends = low if window.ymin is None else window.ymin, high if window.ymax is None else window.ymax
    stacks = draw(axes, courses, looks, ends)
    axes.set_ylim(*ends)
    arrows(axes, courses, ends, looks)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))
    return stacks


def across_figure(parts: Sequence[Part], across: str, style: Style = REPORT) -> Drawing:
    """Draw the test score of every method and named model against the parts' values of the setting `across`.

    Points are means over seeds at the selected rounds, bands their 95 % intervals. A method has no point at a part
    where none of its runs is finished. Only the methods and models that each part draws are drawn.
    """
    points = [(part.at, line) for part in parts for line in part.lines if line.pooled.seeds and _drawn(part, line)]
    lines = [line for _, line in points]
    looks = Looks([(line.method, line.model) for line in lines], shown_names(parts), style=style)
    figure = blank(6.6, 3.9, style)
    axes = figure.subplots()
    tidy(axes, style)
    metric = parts[0].metric
    unit, courses = metric.unit, list[Course]()
    for method, model in sorted({(line.method, line.model) for line in lines}):
        own = sorted(((at, line) for at, line in points if (line.method, line.model) == (method, model)), key=_place)
        x = np.array([at for at, _ in own])
        values = [line.metrics.get(metric.name, line.pooled) for _, line in own]
        mean, half = (unit * np.array([getattr(value, part) for value in values]) for part in ("mean", "half_width"))
        courses.append(Course(method, model, x, mean, half, bounds=metric.bounds))
    told = alike = ""
    if courses:
        ends = limits(courses, rising=metric.higher, settled=0)
        stacks = draw(axes, courses, looks, ends, dotted=True)
        axes.set_ylim(*ends)
        arrows(axes, courses, ends, looks, settled=0)
        told = outside_text(courses, ends, looks, metric.column, settled=0)
        alike = "" if style.beside else coincide_caption(stacks)
        looks.legend(figure, stacks)
    axes.set_ylabel(text.score_axis(metric), fontsize=style.label)
    axes.set_xlabel(plain(across), fontsize=style.label)
    axes.set_xticks(sorted({part.at for part in parts}))
    if lines:
        counts = seed_counts(parts)
        caption(figure, [spread_caption("points", "bands", counts, len(parts[0].seeds)), alike, told])
    return figure


def _drawn(part: Part, line: Line) -> bool:
    methods, models = part.only
    models = models or part.draw
    return (not methods or line.method in methods) and (not models or line.model in models)


def _place(point: tuple[float, Line]) -> float:
    return point[0]


_THIN = 5.0  # inches, below which there is one panel in a row, else two


def diagnostics_figure(part: Part, every: Sequence[Run], style: Style = REPORT) -> Drawing:
    """Draw a panel for each diagnostic of a part, a line for each method that has it: mean over finished seeds.

    every: all runs. Raises `ConfigError` if no method has any.
    """
    found: dict[str, list[Course]] = {}
    counts: list[int] = []
    ended = [run for run in every if run.cell == part.id and run.status == "done"]
    for title in dict.fromkeys(run.method for run in ended if not part.only[0] or run.method in part.only[0]):
        runs = [run.diagnostics for run in ended if run.method == title]
        for name in dict.fromkeys(name for run in runs for name in run):
            course = _course(title, [run[name] for run in runs if name in run])
            if course is not None:
                found.setdefault(name, []).append(course)
                counts.append(sum(name in run for run in runs))
    if not found:
        raise ConfigError(f"cell '{part.id}' has no diagnostics; methods such as mocha and fedu report some")
    looks = Looks([(c.method, "") for courses in found.values() for c in courses], part.names, style=style)
    columns = min(len(found), 1 if style.width is not None and style.width < _THIN else 2)
    rows = -(-len(found) // columns)
    figure = blank(2.2 + 4.2 * columns, 2.9 * rows + 0.4, style)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True)
    stacks: dict[str, tuple[Line2D, ...]] = {}
    for axes, (name, courses) in zip(grid.flat, found.items(), strict=False):
        tidy(axes, style)
        ends = limits(courses, rising=True, settled=0)
        stacks |= draw(axes, courses, looks, ends)
        axes.set_ylim(*ends)
        axes.set_ylabel(plain(name), fontsize=style.label)
    for axes in list(grid.flat)[len(found) :]:
        axes.set_axis_off()
    for axes in grid[-1]:
        axes.set_xlabel("round", fontsize=style.label)
    looks.legend(figure, stacks)
    caption(figure, [spread_caption("lines", "bands", counts, len(part.seeds))])
    return figure


def _course(method: str, runs: Sequence[Sequence[tuple[int, float]]]) -> Course | None:
    """The mean over seeds in the rounds that all seeds have; None without a finite value."""
    rounds = sorted(set.intersection(*({point[0] for point in run} for run in runs)))
    if not rounds:
        return None
    values = np.array([[dict(run)[r] for r in rounds] for run in runs], np.float64)
    if not np.isfinite(values).any():
        return None
    return Course(method, "", np.array(rounds, np.float64), values.mean(axis=0), half_widths(values))


def times_figure(part: Part, style: Style = REPORT) -> Drawing:
    """Draw each method's measured and published seconds per round, as multiples of `base`, on a logarithmic axis."""
    times, names = part.times, part.names
    assert times is not None
    titles = [entry.title for entry in part.methods if not part.only[0] or entry.title in part.only[0]]
    rows = {title: row for row, title in enumerate(titles)}
    figure = blank(7.4, 0.9 + high(0.42, 7.4, style, 0.3) * len(rows), style)
    axes = figure.subplots()
    tidy(axes, style)
    for label, seconds, colour, marker, shift in (
        ("measured", times.measured, COLOURS[0], "o", -0.16),
        ("published", times.published, GREY, "D", 0.16),
    ):
        multiples = {title: value for title, value in times.multiples(seconds).items() if title in rows}
        places = [rows[title] + shift for title in multiples]
        axes.plot(list(multiples.values()), places, marker, color=colour, markersize=6 * style.scale, label=label)
        for place, value in zip(places, multiples.values(), strict=True):
            axes.annotate(
                f"{value:.1f}", (value, place), xytext=(7, -3), textcoords="offset points", fontsize=style.note
            )
    axes.set_xscale("log")
    axes.margins(x=0.12)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in "235" else "")
    axes.tick_params(which="minor", labelsize=style.small, pad=5)
    axes.set_yticks(list(rows.values()), [plain(names[title]) for title in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(f"seconds per round, as multiples of {plain(names[times.base])}'s", fontsize=style.label)
    headline(figure, axes, plain(part.title))
    beside(figure, axes.get_lines())
    measured = f"mean of {seeds_text(times.counts, len(part.seeds))}" if times.counts else "no run has finished"
    caption(figure, [f"measured: {measured}, training without compilation; published: on the paper's machine"])
    return figure
