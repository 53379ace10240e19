"""One figure across an experiment's cells: the scores against the setting that differs between the cells."""

from collections.abc import Sequence

import numpy as np

from idiolect.report import text
from idiolect.report.captions import coincide_caption, seed_counts, spread_caption
from idiolect.report.courses import arrows, draw, outside_text
from idiolect.report.layout import Course, limits
from idiolect.report.looks import Looks, shown_names
from idiolect.report.style import REPORT, Drawing, Style, blank, caption, plain, tidy
from idiolect.report.view.parts import Part
from idiolect.study.outcomes import Line


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
