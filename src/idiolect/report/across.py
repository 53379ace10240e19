"""One figure across an experiment's cells: the scores against the setting that differs between the cells."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from idiolect.report import text
from idiolect.report.captions import coincide_caption, seed_counts, spread_caption
from idiolect.report.courses import Course, draw
from idiolect.report.limits import arrows, limits, outside_text
from idiolect.report.looks import Looks
from idiolect.report.names import method_names
from idiolect.report.style import REPORT, Drawing, Style, blank, caption, plain, tidy
from idiolect.study.analyse.outcomes import Line
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell


def across_figure(
    results: Results,
    cells: Sequence[Cell] | None = None,
    models: Sequence[str] | None = None,
    style: Style = REPORT,
) -> Drawing:
    """Draw the test score of every method and named model against the cells' values of `experiment.across`.

    Points are means over seeds at the selected rounds, bands their 95 % intervals. A method has no point at a cell
    where none of its runs is finished. cells, models: the only ones to draw, of these methods.
    """
    experiment = results.experiment
    cells = experiment.cells if cells is None else cells
    value_of = {cell.id: cell.value(experiment.across) for cell in cells}
    shown = {(cell.id, method.title): models or cell.draw for cell in cells for method in cell.methods}
    lines = [
        line
        for line in results.lines
        if line.pooled.seeds
        and (drawn := shown.get((line.cell, line.method))) is not None
        and (not drawn or line.model in drawn)
    ]
    looks = Looks([(line.method, line.model) for line in lines], method_names(cells), style=style)
    figure = blank(6.6, 3.9, style)
    axes = figure.subplots()
    tidy(axes, style)
    metric = results.metric(cells[0])
    unit, courses = metric.unit, list[Course]()
    for (method, model), group in groupby(sorted(lines, key=_name), _name):
        points = sorted(group, key=lambda line: value_of[line.cell])
        x = np.array([value_of[line.cell] for line in points])
        values = [line.metrics.get(metric.name, line.pooled) for line in points]
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
    axes.set_xlabel(plain(experiment.across), fontsize=style.label)
    axes.set_xticks(sorted(set(value_of.values())))
    if lines:
        counts = seed_counts(results, cells)
        caption(figure, [spread_caption("points", "bands", counts, experiment.seeds), alike, told])
    return figure


def _name(line: Line) -> tuple[str, str]:
    return line.method, line.model
