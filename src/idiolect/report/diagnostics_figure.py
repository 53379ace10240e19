"""The figure of what methods report of themselves over rounds: duality gaps, consensus, step sizes."""

from collections.abc import Sequence

import numpy as np
from matplotlib.lines import Line2D

from idiolect.core.errors import ConfigError
from idiolect.report.captions import spread_caption
from idiolect.report.courses import draw
from idiolect.report.layout import Course, limits
from idiolect.report.looks import Looks
from idiolect.report.style import REPORT, Drawing, Style, blank, caption, plain, tidy
from idiolect.report.view.parts import Part, Run
from idiolect.study.summary import half_widths

_NARROW = 5.0  # inches, below which there is one panel in a row, else two


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
    columns = min(len(found), 1 if style.width is not None and style.width < _NARROW else 2)
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
