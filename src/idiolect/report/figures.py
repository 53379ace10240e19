"""Figures of a comparison's curves: test score and training loss over rounds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from idiolect.core.errors import ConfigError
from idiolect.report import text
from idiolect.report.captions import coincide_caption, seed_counts, spread_caption
from idiolect.report.comparison import cell_title
from idiolect.report.courses import Course, draw
from idiolect.report.crowd import Crowd, thinned
from idiolect.report.limits import arrows, limits, outside_text
from idiolect.report.looks import Looks
from idiolect.report.names import method_names, not_chosen
from idiolect.report.strips import clients_figure
from idiolect.report.style import REPORT, Drawing, Style, blank, caption, plain, save, tidy
from idiolect.study.analyse.outcomes import Curve
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell

__all__ = ["WHOLE", "Window", "clients_figure", "curves_figure", "panels_figure", "save"]

Panels = Literal["both", "score", "loss"]
_NARROW = 5.0  # inches, below which two panels stand above each other


@dataclass(frozen=True)
class Window:
    """The ends of the axes that a user asks for: rounds up to xmax, scores from ymin to ymax. None: by the lines."""

    xmax: float | None = None
    ymin: float | None = None
    ymax: float | None = None


WHOLE = Window()


def curves_figure(
    results: Results, cell: Cell, models: Sequence[str] | None = None, style: Style = REPORT
) -> Drawing:
    """Draw test score and training loss over rounds, for every method and named model (or for `models` alone).

    Lines are means over seeds, bands their 95 % intervals. Settings that were not chosen on validation data are
    thin and grey. Without a train split there is one panel.
    """
    return panels_figure(results, [cell], models, style)


def panels_figure(
    results: Results,
    cells: Sequence[Cell],
    models: Sequence[str] | None = None,
    style: Style = REPORT,
    *,
    panels: Panels = "both",
    window: Window = WHOLE,
) -> Drawing:
    """Draw one row for each cell: test score and, if any cell has it, training loss; one legend for all.

    panels: these alone. Where lines are too many to be told apart, the caption says which are drawn.
    """
    rows: list[list[list[Course]]] = []
    crowds: list[Crowd] = []
    for cell in cells:
        curves = results.curves(cell, "test", models)
        local = next((method.title for method in cell.methods if method.name == "local"), "")
        crowd = thinned(curves, not_chosen(results, cell), results.metric(cell), style.most, local)
        scores = [_within(c, window) for c in curves if (c.method, c.model) in crowd.lines]
        losses = [_within(c, window) for c in results.curves(cell, "train", models)]
        losses = [c for c in losses if (c.method, c.model) in crowd.lines]
        metric = results.metric(cell)
        both = [[Course.score(c, metric, crowd.muted) for c in scores], [Course.loss(c, crowd.muted) for c in losses]]
        rows.append([part for part, name in zip(both, ("score", "loss"), strict=True) if panels in ("both", name)])
        crowds.append(crowd)
    drawn = [course for row in rows for panel in row for course in panel]
    if window.xmax is not None and drawn and not any(len(course.x) for course in drawn):
        raise ConfigError(f"no round up to {window.xmax:g} was evaluated; take a later last round (--xmax)")
    in_colour = {course.method for course in drawn if not course.muted}
    nowhere = {course.method for course in drawn} - in_colour
    grey = next((crowd.grey for crowd in crowds if crowd.muted), "")
    looks = Looks([(c.method, c.model) for c in drawn], method_names(cells), nowhere, style, grey)
    columns = 2 if len(rows[0]) == 2 and any(row[1] for row in rows) else 1
    stacked = columns == 2 and len(cells) == 1 and style.width is not None and style.width < _NARROW
    down, across = (2, 1) if stacked else (len(cells), columns)
    figure = blank(2.2 + 4.2 * across, (3.3 if down > 1 else 3.7) * down + 0.4, style)
    grid = figure.subplots(down, across, squeeze=False)
    stacks: dict[str, tuple[Line2D, ...]] = {}
    notes: list[str] = []
    for axes, cell, row in zip(grid.T if stacked else grid, cells, rows, strict=True):
        metric = results.metric(cell)
        labels = [(text.score_axis(metric), metric.higher), ("training loss", False)]
        labels = labels[1:] if panels == "loss" else labels
        for panel, courses, (label, rising) in zip(axes, row, labels, strict=False):
            given = window if label != "training loss" or panels == "loss" else WHOLE
            stacks |= _panel(panel, courses, looks, rising, given)
            panel.set_ylabel(label, fontsize=style.label)
            where = label.removesuffix(", %") + (f" ({cell_title(cell)})" if len(cells) > 1 else "")
            notes += [outside_text(courses, panel.get_ylim(), looks, where)] if courses else []
        if len(cells) > 1:
            axes[0].set_title(plain(cell_title(cell)), fontsize=style.label, loc="left", fontweight="bold")
    for axes in grid[-1]:
        axes.set_xlabel("round", fontsize=style.label)
    if len(cells) == 1 and style.titled:
        figure.suptitle(plain(cell_title(cells[0])), fontsize=style.title, fontweight="bold", x=0.01, ha="left")
    if drawn:
        looks.legend(figure, stacks)
        counts = seed_counts(results, cells)
        spread = spread_caption("lines", "bands", counts, results.experiment.seeds)
        chosen = "in colour: the setting of each method that was chosen on validation data"
        tuned = any(not_chosen(results, cell) for cell in cells)
        alike = "" if style.beside else coincide_caption(stacks)
        caption(figure, [spread, alike, chosen if tuned else "", *dict.fromkeys(c.told for c in crowds), *notes])
    return figure


def _within(curve: Curve, window: Window) -> Curve:
    """The curve up to the last round that the axis shows."""
    if window.xmax is None:
        return curve
    keep = curve.rounds <= window.xmax
    parts = {name: getattr(curve, name)[keep] for name in ("rounds", "score", "score_ci95", "loss", "loss_ci95")}
    return replace(curve, **parts)


def _panel(
    axes: Axes, courses: Sequence[Course], looks: Looks, rising: bool, window: Window
) -> dict[str, tuple[Line2D, ...]]:
    tidy(axes, looks.style)
    courses = [course for course in courses if len(course.x)]
    if not courses:
        size = looks.style.label
        axes.text(0.5, 0.5, "no finished run", ha="center", va="center", transform=axes.transAxes, fontsize=size)
        return {}
    low, high = limits(courses, rising=rising)
    ends = low if window.ymin is None else window.ymin, high if window.ymax is None else window.ymax
    stacks = draw(axes, courses, looks, ends)
    axes.set_ylim(*ends)
    arrows(axes, courses, ends, looks)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))
    return stacks
