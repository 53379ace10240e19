"""One figure across an experiment's cells: the scores against the setting that differs between the cells."""

from itertools import groupby

import numpy as np
from matplotlib.figure import Figure

from idiolect.metrics.registry import METRICS
from idiolect.report import text
from idiolect.report.captions import seed_counts, spread_caption
from idiolect.report.courses import Course, draw
from idiolect.report.names import method_names
from idiolect.report.style import Looks, blank, caption, tidy
from idiolect.study.outcomes import Line
from idiolect.study.results import Results


def across_figure(results: Results) -> Figure:
    """Draw the test score of every method and named model against the cells' values of `experiment.across`.

    Points are means over seeds at the selected rounds, bands one standard deviation. A method has no point at a cell
    where none of its runs is finished.
    """
    experiment = results.experiment
    value_of = {cell.id: cell.value(experiment.across) for cell in experiment.cells}
    drawn_models = {cell.id: cell.draw for cell in experiment.cells}
    lines = [
        line
        for line in results.lines
        if line.pooled.seeds and (not drawn_models[line.cell] or line.model in drawn_models[line.cell])
    ]
    looks = Looks([(line.method, line.model) for line in lines], method_names(experiment.cells))
    figure = blank(6.6, 3.9)
    axes = figure.subplots()
    tidy(axes)
    courses: list[Course] = []
    for (method, model), group in groupby(sorted(lines, key=_name), _name):
        points = sorted(group, key=lambda line: value_of[line.cell])
        x = np.array([value_of[line.cell] for line in points])
        unit = METRICS[points[0].metric].unit
        mean, std = (unit * np.array([getattr(line.pooled, part) for line in points]) for part in ("mean", "std"))
        courses.append(Course(method, model, x, mean, std))
    edges = [end for course in courses for end in (*course.low, *course.high)] or [0.0]
    stacks = draw(axes, courses, looks, (min(edges), max(edges)), dotted=True)
    axes.set_ylabel(text.score_axis(results.metric(experiment.cells[0])), fontsize=10)
    axes.set_xlabel(experiment.across, fontsize=10)
    axes.set_xticks(sorted(set(value_of.values())))
    if lines:
        looks.legend(figure, stacks)
        counts = seed_counts(results, experiment.cells)
        caption(figure, [spread_caption("points", "bands", counts, experiment.seeds)])
    return figure


def _name(line: Line) -> tuple[str, str]:
    return line.method, line.model
