"""The figure that shows who is hurt: every client's test score under every method."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from idiolect.report.captions import seed_counts, seeds_text
from idiolect.report.comparison import cell_title
from idiolect.report.names import method_names, not_chosen
from idiolect.report.style import GREY, HIT, MISS, NOT_CHOSEN, PALE, beside, blank, caption, tidy, wrapped
from idiolect.study.experiment import Cell, Method
from idiolect.study.results import Results

_BINS = 70  # dots closer than this share of the axis stand beside each other
_MANY = 2000  # above so many marks they are pixels in the SVG file, which would else be megabytes


@dataclass(frozen=True)
class Strip:
    """One method's values, one for each client and finished seed, and whether each is worse than with Local."""

    scores: np.ndarray
    hurt: np.ndarray


def clients_figure(results: Results, cell: Cell) -> Figure:
    """Draw one strip for each method: the test score of every client with its primary model, in every seed.

    Crosses are clients worse off than with Local training in the same seed, where Local was run. A bar marks the
    mean over clients, a triangle the mean of the worst tenth. Settings that were not chosen are grey.
    """
    metric = results.metric(cell)
    unit = metric.unit
    strips = [(method, marks) for method in cell.methods if (marks := strip(results, cell, method)) is not None]
    names, muted = method_names([cell]), not_chosen(results, cell)
    lines = {(line.method, line.model): line for line in results.lines if line.cell == cell.id}
    figure = blank(8.6, max(2.6, 1.2 + 0.75 * len(strips)))
    axes = figure.subplots()
    tidy(axes)
    axes.grid(visible=False, axis="y")
    axes.set_title(cell_title(cell), fontsize=11, fontweight="bold", loc="left")
    if not strips:
        axes.text(0.5, 0.5, "no finished run", ha="center", va="center", transform=axes.transAxes, fontsize=10)
        return figure
    every = unit * np.concatenate([marks.scores for _, marks in strips])
    span = float(np.ptp(every)) or 1.0
    size = float(np.clip(900 / max(len(marks.scores) for _, marks in strips), 4, 22))
    pixels = len(every) > _MANY
    for i, (method, marks) in enumerate(strips):
        shown, hurt = unit * marks.scores, marks.hurt
        height = i + spread(shown, span / _BINS)
        line = lines[method.title, results.names(cell, method)[0]]
        mean, worst = unit * line.mean.mean, unit * line.worst10.mean
        axes.plot([mean, mean], [i - 0.42, i + 0.42], color="black", linewidth=2, solid_capstyle="butt", zorder=1.5)
        dot, cross = (PALE, PALE) if method.title in muted else (HIT, MISS)
        looks: dict[str, Any] = {"zorder": 2, "rasterized": pixels}
        axes.scatter(shown[~hurt], height[~hurt], s=size, color=dot, alpha=0.55, linewidths=0, **looks)
        axes.scatter(
            shown[hurt], height[hurt], s=1.2 * size, color=cross, alpha=0.8, marker="x", linewidths=0.9, **looks
        )
        axes.plot([worst], [i + 0.28], color="black", marker="^", markersize=6, linestyle="none", clip_on=False)
    ticks = [f"{wrapped(names[m.title])}\n({results.names(cell, m)[0]})" for m, _ in strips]
    axes.set_yticks(range(len(strips)), ticks, fontsize=9)
    for tick, (method, _) in zip(axes.get_yticklabels(), strips, strict=True):
        tick.set_color(GREY if method.title in muted else "black")
    axes.set_ylim(len(strips) - 0.45, -0.55)
    axes.set_xlabel(f"test {metric.column} of each client" + (", %" if metric.percent else ""), fontsize=10)
    compared = any(marks.hurt.any() for method, marks in strips if method.title not in muted)
    beside(figure, _legend(compared, any(method.title in muted for method, _ in strips)))
    caption(figure, [_caption(seed_counts(results, [cell]), results.experiment.seeds, bool(muted))])
    return figure


def _caption(counts: Sequence[int], planned: int, muted: bool) -> str:
    seeds, several = seeds_text(counts, planned), max(counts) > 1
    marks = f"one mark a client and seed, {seeds}" if several else f"one mark a client, {seeds}"
    mean = "the mean over clients, and of the worst tenth of the clients" + (", mean over seeds" if several else "")
    grey = "; grey: settings that validation data did not choose" if muted else ""
    return f"{marks}, marks of nearly equal value beside each other; bar and triangle: {mean}{grey}"


def strip(results: Results, cell: Cell, method: Method) -> Strip | None:
    """Build a method's strip; None if no run is finished. Clients without a value have no mark."""
    model, metric = results.names(cell, method)[0], results.metric(cell)
    scores: list[np.ndarray] = []
    hurt: list[np.ndarray] = []
    for row in results.finished(cell, method):
        selected = results.selected(cell, row, model)
        if selected is None:
            continue
        values = selected[1].values[metric.name]
        reference = results.reference(cell, ("local",), "local", row.seed)
        reference_values = values if reference is None else reference
        finite = np.isfinite(values)
        scores.append(values[finite])
        hurt.append(metric.worse(values, reference_values)[finite])
    return Strip(np.concatenate(scores), np.concatenate(hurt)) if scores else None


def spread(values: np.ndarray, width: float) -> np.ndarray:
    """Offsets in [-0.34, 0.34] that keep dots of nearly equal value apart; the same values, the same picture."""
    offsets = np.zeros(len(values))
    bins = np.floor((values - values.min()) / width).astype(np.int64)
    step = min(0.09, 0.68 / max(int(np.bincount(bins).max()) - 1, 1))
    for b in np.unique(bins):
        inside = np.flatnonzero(bins == b)
        rank = np.arange(len(inside))
        offsets[inside] = step * np.where(rank % 2 == 0, rank // 2, -(rank // 2 + 1))
    return offsets


def _legend(compared: bool, muted: bool) -> list[Artist]:
    dot: dict[str, Any] = {"linestyle": "none", "markersize": 5}
    handles: list[Artist] = [
        Line2D([], [], color=HIT, marker="o", label="client", **dot),
        Line2D([], [], color="black", marker="|", markersize=12, markeredgewidth=2, linestyle="none", label="mean"),
        Line2D([], [], color="black", marker="^", markersize=6, linestyle="none", label="worst 10 %"),
    ]
    if compared:
        handles.insert(1, Line2D([], [], color=MISS, marker="x", label="client worse off\nthan with Local", **dot))
    if muted:
        handles.append(Line2D([], [], color=PALE, marker="o", label=f"setting {NOT_CHOSEN}", **dot))
    return handles
