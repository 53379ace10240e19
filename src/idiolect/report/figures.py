"""Figures of a comparison's curves: test score and training loss over rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from idiolect.core.errors import ConfigError
from idiolect.report import text
from idiolect.report.captions import coincide_caption, seed_counts, spread_caption
from idiolect.report.courses import arrows, draw, outside_text
from idiolect.report.layout import Layout, layout_of
from idiolect.report.looks import Looks, shown_names
from idiolect.report.style import REPORT, Drawing, Style, blank, caption, plain, tidy
from idiolect.report.view.parts import Part

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
    """Draw test score and training loss over rounds, for every method and named model (or for `models` alone).

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

    panels: these alone. Where lines are too many to be told apart, the caption says which are drawn.
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
