"""Figures of a comparison's curves: test score and training loss over rounds."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from idiolect.report import text
from idiolect.report.comparison import cell_title
from idiolect.report.strips import clients_figure
from idiolect.report.style import Looks, blank, save, tidy
from idiolect.study.experiment import Cell
from idiolect.study.outcomes import Curve
from idiolect.study.results import Results

__all__ = ["clients_figure", "curves_figure", "panels_figure", "save"]

_SETTLED = 0.25  # rounds before this share of all rounds count as the start


def curves_figure(results: Results, cell: Cell, models: Sequence[str] | None = None) -> Figure:
    """Draw test score and training loss over rounds, for every method and named model (or for `models` alone).

    Lines are means over seeds, bands one standard deviation. Without a train split there is one panel.
    """
    return panels_figure(results, [cell], models)


def panels_figure(results: Results, cells: Sequence[Cell], models: Sequence[str] | None = None) -> Figure:
    """Draw one row for each cell: test score and, if any cell has it, training loss; one legend for all."""
    test = [results.curves(cell, "test", models) for cell in cells]
    train = [results.curves(cell, "train", models) for cell in cells]
    drawn = [curve for row in test for curve in row]
    looks = Looks([(c.method, c.model) for c in drawn])
    columns = 2 if any(train) else 1
    entries = len(looks.methods) + len(looks.models) + 3 + sum(len(name) // 27 for name in looks.methods)
    height = max((3.3 if len(cells) > 1 else 3.7) * len(cells) + 0.4, 0.21 * entries + 0.3)
    figure = blank(2.2 + 4.2 * columns, height)
    grid = figure.subplots(len(cells), columns, squeeze=False)
    for i, cell in enumerate(cells):
        metric = results.metric(cell)
        _panel(grid[i, 0], [Course.score(c, metric.unit) for c in test[i]], looks, rising=metric.higher)
        grid[i, 0].set_ylabel(text.score_axis(metric), fontsize=10)
        if columns > 1:
            _panel(grid[i, 1], [Course.loss(c) for c in train[i]], looks, rising=False)
            grid[i, 1].set_ylabel("training loss", fontsize=10)
        if len(cells) > 1:
            grid[i, 0].set_title(cell_title(cell), fontsize=10, loc="left", fontweight="bold")
    for axes in grid[-1]:
        axes.set_xlabel("round", fontsize=10)
    if len(cells) == 1:
        figure.suptitle(cell_title(cells[0]), fontsize=11, fontweight="bold", x=0.01, ha="left")
    if drawn:
        looks.legend(figure)
    return figure


class Course:
    """One line of a panel: x values, means, and the band of one standard deviation around them."""

    def __init__(self, method: str, model: str, x: np.ndarray, mean: np.ndarray, std: np.ndarray) -> None:
        self.method, self.model, self.x, self.mean = method, model, x, mean
        self.banded = bool(np.isfinite(std).any())
        spread = np.nan_to_num(std)
        self.low, self.high = mean - spread, mean + spread

    @classmethod
    def score(cls, curve: Curve, unit: float) -> "Course":
        """Make a line of a curve's scores, times `unit`."""
        return cls(curve.method, curve.model, curve.rounds, unit * curve.score, unit * curve.score_std)

    @classmethod
    def loss(cls, curve: Curve) -> "Course":
        """Make a line of a curve's losses."""
        return cls(curve.method, curve.model, curve.rounds, curve.loss, curve.loss_std)

    def draw(self, axes: Axes, looks: Looks, *, dotted: bool) -> None:
        """Draw the line and its band. dotted: mark every point, even if the method needs no marker."""
        colour = looks.colour(self.method, self.model)
        axes.plot(
            self.x,
            self.mean,
            color=colour,
            linestyle=looks.style(self.model),
            linewidth=1.7,
            marker=looks.marker(self.method) or ("o" if dotted else ""),
            markersize=4,
            markevery=1 if dotted else max(1, len(self.x) // 8),
            label=f"{self.method}, {self.model}",
        )
        if self.banded:
            axes.fill_between(self.x, self.low, self.high, color=colour, alpha=0.15, linewidth=0)


def _panel(axes: Axes, courses: Sequence[Course], looks: Looks, *, rising: bool) -> None:
    tidy(axes)
    if not courses:
        axes.text(0.5, 0.5, "no finished run", ha="center", va="center", transform=axes.transAxes, fontsize=10)
        return
    for course in courses:
        course.draw(axes, looks, dotted=len(course.x) == 1)
    axes.set_ylim(*limits(courses, rising=rising))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))


def limits(courses: Sequence[Course], *, rising: bool) -> tuple[float, float]:
    """Choose y limits that show the differences between lines: their steep start may lie outside."""
    low = np.concatenate([c.low for c in courses])
    high = np.concatenate([c.high for c in courses])
    rounds = np.concatenate([c.x for c in courses])
    finite = np.isfinite(low) & np.isfinite(high)
    if not finite.any():
        return 0.0, 1.0
    settled = finite & (rounds >= rounds.min() + _SETTLED * (rounds.max() - rounds.min()))
    settled = settled if settled.any() else finite
    full = float(low[finite].min()), float(high[finite].max())
    bottom, top = (float(low[settled].min()), full[1]) if rising else (full[0], float(high[settled].max()))
    if top - bottom > 0.5 * (full[1] - full[0]):
        bottom, top = full
    margin = 0.06 * (top - bottom) or 0.01 * abs(top) or 0.01
    return bottom - margin, top + margin
