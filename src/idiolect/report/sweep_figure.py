"""A sweep's figure: validation score against each hyper-parameter that was swept."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.metrics.base import Metric
from idiolect.report.captions import spread_caption
from idiolect.report.layout import NOT_CHOSEN
from idiolect.report.legend import beside
from idiolect.report.style import (
    GREY,
    HIT,
    MISS,
    PALE,
    REPORT,
    Drawing,
    Style,
    blank,
    caption,
    high,
    plain,
    tidy,
)
from idiolect.study.search.choose import Swept, Tried

_FEW = 10  # up to this many values are categories side by side; more lie on a numeric scale
_WIDE = 50  # a scale is logarithmic if the largest value is this many times the smallest


def sweep_figure(swept: Swept, style: Style = REPORT) -> Drawing:
    """Draw a row for each method and a panel for each hyper-parameter: mean with its 95 % interval over seeds.

    The chosen setting is a star, the others are grey. Settings that share a value are side by side above it. One that
    diverged is a cross at the bottom; one that is far worse than most is a triangle at the end of the axis.
    """
    methods = list(dict.fromkeys(one.setting.method for one in swept.tried))
    rows = [[one for one in swept.tried if one.setting.method == method] for method in methods]
    keys = [_swept_keys(row) for row in rows]
    columns = max(map(len, keys))
    width = 1.6 + 3.1 * columns
    figure = blank(width, 0.3 + high(2.7, width, style, 1.7) * len(rows), style)
    grid = figure.subplots(len(rows), columns, squeeze=False, sharey="row")
    metric = swept.metric
    unit, name = metric.unit, f"{metric.column}, %" if metric.percent else metric.column
    beyond = False
    for row, method, tried, panels in zip(grid, methods, rows, keys, strict=True):
        worst = _worst_shown([unit * t.validation.mean for t in tried if t.validation.seeds], metric)
        beyond |= worst is not None
        for axes, key in zip(row, panels, strict=False):
            _panel(axes, tried, key, metric, worst, PALE if swept.chosen else HIT, style)
            axes.set_xlabel(plain(key), fontsize=style.label)
        for axes in row[len(panels) :]:
            axes.set_axis_off()
        row[0].set_ylabel(f"validation {name}", fontsize=style.label)
        if style.titled or len(rows) > 1:
            row[0].set_title(ALGORITHMS[method].title, fontsize=style.label, loc="left", fontweight="bold")
        if worst is not None:
            row[0].set_ylim(**{"bottom" if swept.metric.higher else "top": worst})
    beside(figure, _legend(swept, beyond, style.scale))
    counts = [seeds for one in swept.tried if (seeds := one.validation.seeds)]
    caption(figure, [spread_caption("points", "bars", counts, swept.experiment.seeds)] if counts else [])
    return figure


def _worst_shown(values: Sequence[float], metric: Metric) -> float | None:
    """The worst score on the axis if some settings are so bad that the others could not be told apart, else None."""
    sign = 1 if metric.higher else -1
    order = sorted((sign * v for v in values), reverse=True)
    if len(order) < 4:
        return None
    best, usual = order[0], order[3 * len(order) // 4]
    end = usual - 1.5 * (best - usual)
    return sign * end if best > usual and order[-1] < end else None


def _swept_keys(tried: Sequence[Tried]) -> list[str]:
    """The hyper-parameters with more than one tried value; the first one if there is none."""
    keys = list(dict.fromkeys(key for one in tried for key in one.setting.values))
    return [key for key in keys if len({repr(one.setting.values[key]) for one in tried}) > 1] or keys[:1] or [""]


def _panel(
    axes: Axes, tried: Sequence[Tried], key: str, metric: Metric, worst: float | None, other: str, style: Style
) -> None:
    places = _places(axes, [one.setting.values.get(key, "defaults") for one in tried])
    for one, x in zip(tried, places, strict=True):
        y = metric.unit * one.validation.mean
        colour, marker, size = (MISS, "*", 12) if one.chosen else (other, "o", 4.5)
        if one.failures:
            _at_end(axes, x, "x", GREY, 0.04, style.scale)
        elif worst is not None and metric.better(worst, y):
            _at_end(axes, x, "v" if metric.higher else "^", other, 0.04 if metric.higher else 0.96, style.scale)
        elif one.validation.seeds:
            bar = _bar(y, metric.unit * one.validation.half_width, metric) if one.validation.seeds > 1 else None
            look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": size * style.scale}
            look |= {"linestyle": "none", "elinewidth": 0.9 * style.scale, "zorder": 4 if one.chosen else 3}
            axes.errorbar([x], [y], yerr=bar, **look)
    tidy(axes, style)
    axes.margins(x=0.06)


def _bar(y: float, half: float, metric: Metric) -> list[list[float]]:
    """How far an interval reaches below and above its mean, at most to the possible values."""
    low, high = metric.bounds
    return [[min(half, y - low)], [min(half, high - y)]]


def _at_end(axes: Axes, x: float, marker: str, colour: str, height: float, scale: float) -> None:
    """Draw a mark at the end of the axis, for a setting without a score that the axis can show."""
    axes.plot(
        [x], [height], marker, color=colour, markersize=6 * scale, transform=axes.get_xaxis_transform(), clip_on=False
    )


def _places(axes: Axes, values: Sequence[Any]) -> list[float]:
    """Set the x axis's scale and ticks; returns the x position of each setting."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    distinct: list[Any] = sorted({*values}) if numbers else list(dict.fromkeys(map(str, values)))
    if numbers and len(distinct) > _FEW:
        if distinct[0] > 0 and distinct[-1] / distinct[0] >= _WIDE:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
        return [float(v) for v in values]
    ticks = [f"{v:.6g}" if numbers else v for v in distinct]
    axes.set_xticks(range(len(ticks)), ticks, rotation=30 if max(map(len, ticks)) * len(ticks) > 30 else 0)
    axes.set_xlim(-0.6, len(ticks) - 0.4)
    groups = [distinct.index(v if numbers else str(v)) for v in values]
    return [g + _aside(groups[:i].count(g), groups.count(g)) for i, g in enumerate(groups)]


def _aside(nth: int, of: int) -> float:
    """The offset of the nth of several settings from the value that they share."""
    return (nth - (of - 1) / 2) * min(0.12, 0.8 / of)


def _legend(swept: Swept, beyond: bool, scale: float) -> list[Line2D]:
    tried, other = (NOT_CHOSEN, PALE) if swept.chosen else ("tried", HIT)
    end = "v" if swept.metric.higher else "^"
    looks = [("o", other, 4.5, tried), ("*", MISS, 12, "chosen"), (end, other, 6, "worse than the axis shows")]
    looks.append(("x", GREY, 6, "diverged"))
    occurs = [
        any(not one.chosen for one in swept.tried),
        bool(swept.chosen),
        beyond,
        any(one.failures for one in swept.tried),
    ]
    return [
        Line2D([], [], linestyle="none", marker=marker, color=colour, markersize=size * scale, label=label)
        for (marker, colour, size, label), shown in zip(looks, occurs, strict=True)
        if shown
    ]
