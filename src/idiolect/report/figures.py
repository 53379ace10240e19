"""Figures of a comparison's curves: test score and training loss over rounds."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from idiolect.report import text
from idiolect.report.captions import seed_counts, spread_caption
from idiolect.report.comparison import cell_title
from idiolect.report.courses import Course, draw
from idiolect.report.limits import limits, outside_text
from idiolect.report.names import method_names, not_chosen
from idiolect.report.strips import clients_figure
from idiolect.report.style import Looks, blank, caption, save, tidy
from idiolect.study.experiment import Cell
from idiolect.study.results import Results

__all__ = ["clients_figure", "curves_figure", "panels_figure", "save"]


def curves_figure(results: Results, cell: Cell, models: Sequence[str] | None = None) -> Figure:
    """Draw test score and training loss over rounds, for every method and named model (or for `models` alone).

    Lines are means over seeds, bands one standard deviation. Settings that were not chosen on validation data are
    thin and grey. Without a train split there is one panel.
    """
    return panels_figure(results, [cell], models)


def panels_figure(results: Results, cells: Sequence[Cell], models: Sequence[str] | None = None) -> Figure:
    """Draw one row for each cell: test score and, if any cell has it, training loss; one legend for all."""
    muted = [not_chosen(results, cell) for cell in cells]
    rows: list[list[list[Course]]] = []
    for cell, without in zip(cells, muted, strict=True):
        unit = results.metric(cell).unit
        scores = [Course.score(curve, unit, without) for curve in results.curves(cell, "test", models)]
        losses = [Course.loss(curve, without) for curve in results.curves(cell, "train", models)]
        rows.append([scores, losses])
    drawn = [course for row in rows for panel in row for course in panel]
    in_colour = {course.method for course in drawn if not course.muted}
    nowhere = {course.method for course in drawn} - in_colour
    looks = Looks([(c.method, c.model) for c in drawn], method_names(cells), nowhere)
    columns = 2 if any(losses for _, losses in rows) else 1
    figure = blank(2.2 + 4.2 * columns, (3.3 if len(cells) > 1 else 3.7) * len(cells) + 0.4)
    grid = figure.subplots(len(cells), columns, squeeze=False)
    stacks: dict[str, tuple[Line2D, ...]] = {}
    notes: list[str] = []
    for axes, cell, row in zip(grid, cells, rows, strict=True):
        metric = results.metric(cell)
        labels = (text.score_axis(metric), "training loss")
        for panel, courses, label, rising in zip(axes, row, labels, (metric.higher, False), strict=False):
            stacks |= _panel(panel, courses, looks, rising=rising)
            panel.set_ylabel(label, fontsize=10)
            where = label.removesuffix(", %") + (f" ({cell_title(cell)})" if len(cells) > 1 else "")
            notes += [outside_text(courses, panel.get_ylim(), looks, where)] if courses else []
        if len(cells) > 1:
            axes[0].set_title(cell_title(cell), fontsize=10, loc="left", fontweight="bold")
    for axes in grid[-1]:
        axes.set_xlabel("round", fontsize=10)
    if len(cells) == 1:
        figure.suptitle(cell_title(cells[0]), fontsize=11, fontweight="bold", x=0.01, ha="left")
    if drawn:
        looks.legend(figure, stacks)
        counts = seed_counts(results, cells)
        spread = spread_caption("lines", "bands", counts, results.experiment.seeds)
        grey = "in colour: the setting of each method that was chosen on validation data" if any(muted) else ""
        caption(figure, [spread, grey, *notes])
    return figure


def _panel(axes: Axes, courses: Sequence[Course], looks: Looks, *, rising: bool) -> dict[str, tuple[Line2D, ...]]:
    tidy(axes)
    if not courses:
        axes.text(0.5, 0.5, "no finished run", ha="center", va="center", transform=axes.transAxes, fontsize=10)
        return {}
    ends = limits(courses, rising=rising)
    stacks = draw(axes, courses, looks, ends)
    axes.set_ylim(*ends)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))
    return stacks
