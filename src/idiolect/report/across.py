"""One figure across an experiment's cells: the scores against the setting by which the cells differ."""

import math
from itertools import groupby

import numpy as np
from matplotlib.figure import Figure

from idiolect.lines import Line
from idiolect.report.style import Looks, blank, tidy
from idiolect.results import Results


def across_figure(results: Results) -> Figure:
    """Test score of every method and named model against the cells' values of `experiment.across`.

    Points are means over seeds at the selected rounds, bands one standard deviation. A cell without a finished run
    of a method has no point of it.
    """
    experiment = results.experiment
    where = {cell.id: cell.value(experiment.across) for cell in experiment.cells}
    shown = {cell.id: cell.draw for cell in experiment.cells}
    lines = [
        line
        for line in results.lines
        if line.weighted.seeds and (not shown[line.cell] or line.model in shown[line.cell])
    ]
    looks = Looks([line.method for line in lines], [line.model for line in lines])
    entries = len(looks.methods) + len(looks.models) + 3
    figure = blank(6.6, max(3.9, 0.21 * entries + 0.3))
    axes = figure.subplots()
    tidy(axes)
    for (method, model), group in groupby(sorted(lines, key=_name), _name):
        points = sorted(group, key=lambda line: where[line.cell])
        x = np.array([where[line.cell] for line in points])
        unit = 100 if points[0].task == "classification" else 1
        mean, std = (unit * np.array([getattr(line.weighted, part) for line in points]) for part in ("mean", "std"))
        colour = looks.colour(method, model)
        axes.plot(
            *(x, mean),
            color=colour,
            linestyle=looks.style(model),
            linewidth=1.7,
            marker=looks.marker(method) or "o",
            markersize=4,
            label=f"{method}, {model}",
        )
        if not all(map(math.isnan, std)):
            spread = np.nan_to_num(std)
            axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
    score = "test accuracy, %" if all(line.task == "classification" for line in lines) else "test mse"
    axes.set_ylabel(score, fontsize=10)
    axes.set_xlabel(experiment.across, fontsize=10)
    axes.set_xticks(sorted(set(where.values())))
    if lines:
        looks.legend(figure)
    return figure


def _name(line: Line) -> tuple[str, str]:
    return line.method, line.model
