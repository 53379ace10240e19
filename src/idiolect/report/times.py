"""Seconds a round, measured and published: the values for a table, and a figure."""

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

from idiolect.report.captions import seeds_text
from idiolect.report.comparison import cell_title
from idiolect.report.names import method_names
from idiolect.report.style import COLOURS, GREY, blank, caption, tidy
from idiolect.study.experiment import Cell
from idiolect.study.results import Results


def is_timed(cell: Cell) -> bool:
    """Whether any method of the cell has published seconds a round."""
    return any(method.published_seconds for method in cell.methods)


@dataclass(frozen=True)
class Times:
    """Seconds a round by method. base: the paper's fastest method, of which the others are given as multiples."""

    base: str
    measured: Mapping[str, float]
    published: Mapping[str, float]

    @classmethod
    def of(cls, results: Results, cell: Cell) -> "Times":
        """Collect the means over the finished runs and the published values; the cell must have one (`is_timed`)."""
        published = {method.title: method.published_seconds for method in cell.methods if method.published_seconds}
        seconds_by_title = {method.title: results.round_seconds(cell, method) for method in cell.methods}
        measured = {title: seconds.mean for title, seconds in seconds_by_title.items() if seconds.seeds}
        return cls(min(published, key=lambda title: published[title]), measured, published)

    def multiples(self, seconds: Mapping[str, float]) -> dict[str, float]:
        """Divide all by the value of `base`; empty if `base` has none."""
        return {title: value / seconds[self.base] for title, value in seconds.items() if self.base in seconds}


def times_figure(results: Results, cell: Cell) -> Figure:
    """Draw each method's measured and published seconds a round, as multiples of `base`, on a logarithmic axis."""
    times = Times.of(results, cell)
    rows = {method.title: row for row, method in enumerate(cell.methods)}
    names = method_names([cell])
    figure = blank(7.4, 0.9 + 0.42 * len(rows))
    axes = figure.subplots()
    tidy(axes)
    for label, seconds, colour, marker, shift in (
        ("measured", times.measured, COLOURS[0], "o", -0.16),
        ("published", times.published, GREY, "D", 0.16),
    ):
        multiples = times.multiples(seconds)
        places = [rows[title] + shift for title in multiples]
        axes.plot(list(multiples.values()), places, marker, color=colour, markersize=6, label=label)
        for place, value in zip(places, multiples.values(), strict=True):
            axes.annotate(f"{value:.1f}", (value, place), xytext=(7, -3), textcoords="offset points", fontsize=8)
    axes.set_xscale("log")
    axes.margins(x=0.12)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in "235" else "")
    axes.tick_params(which="minor", labelsize=9, pad=5)
    axes.set_yticks(list(rows.values()), [names[title] for title in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(f"seconds a round, as multiples of {names[times.base]}'s", fontsize=10)
    axes.set_title(cell_title(cell), fontsize=11, loc="left", fontweight="bold")
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    counts = [n for method in cell.methods if (n := results.round_seconds(cell, method).seeds)]
    measured = f"mean of {seeds_text(counts, results.experiment.seeds)}" if counts else "no run has finished"
    caption(figure, [f"measured: {measured}, training without compilation; published: on the paper's machine"])
    return figure
