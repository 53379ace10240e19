"""The figure of seconds a round, measured and published."""

from idiolect.report.captions import seeds_text
from idiolect.report.comparison import cell_title
from idiolect.report.legend import beside
from idiolect.report.looks import COLOURS
from idiolect.report.names import method_names
from idiolect.report.style import GREY, REPORT, Drawing, Style, blank, caption, headline, high, plain, tidy
from idiolect.report.times import Times
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell


def times_figure(results: Results, cell: Cell, style: Style = REPORT) -> Drawing:
    """Draw each method's measured and published seconds a round, as multiples of `base`, on a logarithmic axis."""
    times = Times.of(results, cell)
    rows = {method.title: row for row, method in enumerate(cell.methods)}
    names = method_names([cell])
    figure = blank(7.4, 0.9 + high(0.42, 7.4, style, 0.3) * len(rows), style)
    axes = figure.subplots()
    tidy(axes, style)
    for label, seconds, colour, marker, shift in (
        ("measured", times.measured, COLOURS[0], "o", -0.16),
        ("published", times.published, GREY, "D", 0.16),
    ):
        multiples = times.multiples(seconds)
        places = [rows[title] + shift for title in multiples]
        axes.plot(list(multiples.values()), places, marker, color=colour, markersize=6 * style.scale, label=label)
        for place, value in zip(places, multiples.values(), strict=True):
            axes.annotate(
                f"{value:.1f}", (value, place), xytext=(7, -3), textcoords="offset points", fontsize=style.note
            )
    axes.set_xscale("log")
    axes.margins(x=0.12)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in "235" else "")
    axes.tick_params(which="minor", labelsize=style.small, pad=5)
    axes.set_yticks(list(rows.values()), [plain(names[title]) for title in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(f"seconds a round, as multiples of {plain(names[times.base])}'s", fontsize=style.label)
    headline(figure, axes, plain(cell_title(cell)))
    beside(figure, axes.get_lines())
    counts = [n for method in cell.methods if (n := results.round_seconds(cell, method).seeds)]
    measured = f"mean of {seeds_text(counts, results.experiment.seeds)}" if counts else "no run has finished"
    caption(figure, [f"measured: {measured}, training without compilation; published: on the paper's machine"])
    return figure
