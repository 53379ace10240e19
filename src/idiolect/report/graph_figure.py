"""The figure of the graph among clients, or of the relations that were learned: the weights, and the spectrum."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.ticker import MaxNLocator

from idiolect.core.errors import require
from idiolect.report.style import HIT, MISS, REPORT, Drawing, Style, blank, caption, plain, tidy, wrapped

_WIDTH = 7.4  # inches, in a report
_NARROW = 5.0  # inches, below which the titles of panels are left to the caption
_MOST = 6  # graphs
_CELLS = 400  # rows of a matrix; of more clients several share a cell
_STEMMED = 150  # eigenvalues that have a stem
_POINTS = 72
_WEIGHTS = LinearSegmentedColormap.from_list("weights", ["#d3e6f3", HIT, "#00263d"])
_SIGNED = LinearSegmentedColormap.from_list("signed", ["#5c2800", MISS, "#ffffff", HIT, "#00263d"])


def graph_figure(graphs: Sequence[Mapping[str, Any]], names: Sequence[str] = (), style: Style = REPORT) -> Drawing:
    """Draw a row for each graph: left the matrix of its weights, right its eigenvalues in ascending order.

    graphs: as the page has them (`recorded_graphs`); names: of all clients, shown where there is room. Learned
    relations have a scale that diverges from 0. Raises `ConfigError` if there is no graph.
    """
    require(bool(graphs), "there is no graph among clients to draw; fedu and dfedu have one, and mocha learns one")
    drawn = graphs[:_MOST]
    figure = blank(_WIDTH, 4.0 * len(drawn), style)
    grid = figure.subplots(len(drawn), 2, squeeze=False, width_ratios=(1, 1.05))
    side = 2.7 * figure.get_figwidth() / _WIDTH
    told: list[str] = []
    for (left, right), graph in zip(grid, drawn, strict=True):
        said = [f"{plain(graph['title'])}. Left: {_small(graph['note'])}", _matrix(figure, left, graph, names, side)]
        if graph["eigenvalues"]:
            _spectrum(right, graph["eigenvalues"], style)
            said.append(f"Right: {_small(graph['spectrum'])}")
        else:
            right.set_axis_off()
            said.append("The spectrum of so many clients was not recorded.")
        if style.titled or len(drawn) > 1:
            title = wrapped(plain(graph["title"]), 60 if style.width is None or style.width >= _NARROW else 20)
            left.set_title(title, fontsize=style.small, loc="left")
        told.append(" ".join(filter(None, said)))
    left_out = [graph["title"] for graph in graphs[_MOST:]]
    caption(figure, [*told, f"not drawn: {', '.join(left_out)}" if left_out else ""])
    _square(figure, [left for left, _ in grid])
    return figure


def _square(figure: Drawing, panels: Sequence[Axes]) -> None:
    """Make panels above each other square by the figure's height: a fixed aspect would lay titles over labels."""
    figure.draw_without_rendering()
    boxes = [panel.get_window_extent() for panel in panels]
    missing = sum(box.width - box.height for box in boxes) / figure.dpi
    figure.set_figheight(figure.get_figheight() + missing)


def _matrix(figure: Drawing, axes: Axes, graph: Mapping[str, Any], names: Sequence[str], side: float) -> str:
    """Draw the weights; returns what a caption must say of them after their note."""
    style, count, learned, scaled = figure.style, int(graph["clients"]), bool(graph["learned"]), _scaled(graph)
    a_cell = -(-count // _CELLS)
    matrix = weights_of(graph, a_cell)
    known = matrix[np.isfinite(matrix)]
    top = float(np.abs(known).max(initial=0.0)) or 1.0
    low, end = -top if learned else 0.0, len(matrix) * a_cell - 0.5
    image = axes.imshow(
        matrix,
        cmap=_SIGNED if learned else _WEIGHTS,
        norm=Normalize(low, top if scaled else 2 * top),
        extent=(-0.5, end, end, -0.5),
        interpolation="nearest",
        aspect="auto",
    )
    _ticks(axes, names if len(names) == count else (), count, side, style)
    if scaled:
        bar = figure.colorbar(image, ax=axes, location="bottom", fraction=0.05, pad=0.03, aspect=30)
        bar.ax.tick_params(labelsize=style.small, length=2)
        bar.locator = MaxNLocator(4)
        bar.update_ticks()
        bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
        bar.set_label("relation" if learned else "weight", fontsize=style.label)
    if not len(known):
        words = "no edge between clients" + ("\neach is tied to the server" if graph["hub"] else "")
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", fontsize=style.small)
        return "There is none between clients; each is tied to the server." if graph["hub"] else "There is none."
    alike = "" if scaled else f"Each is {known[0]:g}."
    cells = f"A cell stands for {a_cell} x {a_cell} clients, by their largest weight." if a_cell > 1 else ""
    return " ".join(filter(None, [alike, cells]))


def _scaled(graph: Mapping[str, Any]) -> bool:
    """Whether the weights differ, so that their colours need a scale."""
    return bool(graph["learned"]) or len({weight for _, _, weight in graph["edges"]}) > 1


def weights_of(graph: Mapping[str, Any], a_cell: int = 1) -> Float[np.ndarray, "rows rows"]:
    """The symmetric matrix of weights, NaN where there is none; a cell holds the largest of a_cell x a_cell pairs."""
    rows = -(-int(graph["clients"]) // a_cell)
    matrix = np.full((rows, rows), np.nan)
    for one, other, weight in sorted(graph["edges"], key=lambda edge: abs(edge[2] or 0.0)):  # the largest come last
        if weight is not None:
            matrix[one // a_cell, other // a_cell] = matrix[other // a_cell, one // a_cell] = weight
    return matrix


def _ticks(axes: Axes, names: Sequence[str], count: int, side: float, style: Style) -> None:
    """Name the clients where their names have room next to each other, otherwise number them."""
    axes.tick_params(labelsize=style.small, length=2)
    if names and side * _POINTS / count >= 1.15 * style.small:
        shown = [plain(name if len(name) <= 10 else f"{name[:9]}…") for name in names]
        axes.set_yticks(range(count), shown)
        axes.set_xticks(range(count), shown, rotation=90)
        return
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("client", fontsize=style.label)
    axes.set_ylabel("client", fontsize=style.label)


def _spectrum(axes: Axes, values: Sequence[float], style: Style) -> None:
    tidy(axes, style)
    places = np.arange(1, len(values) + 1)
    if len(values) <= _STEMMED:
        axes.vlines(
            places, np.minimum(values, 0), np.maximum(values, 0), color=HIT, alpha=0.45, linewidth=style.line / 2
        )
    axes.axhline(0, color="black", linewidth=0.8 * style.line / REPORT.line)
    size = (4.5 if len(values) <= 60 else 3 if len(values) <= _STEMMED else 1.5) * style.scale
    axes.plot(places, values, "o", color=HIT, markersize=size, markeredgewidth=0)
    axes.margins(x=0.04)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))  # else their number follows the height
    axes.set_xlabel("place", fontsize=style.label)
    axes.set_ylabel("eigenvalue", fontsize=style.label)


def _small(sentence: str) -> str:
    """A sentence that continues after a colon."""
    return f"{sentence[:1].lower()}{sentence[1:]}"
