"""The figure of seconds a round, measured and published."""

from idiolect.report.captions import seeds_text
from idiolect.report.layout import COLOURS
from idiolect.report.legend import beside
from idiolect.report.style import GREY, REPORT, Drawing, Style, blank, caption, headline, high, plain, tidy
from idiolect.report.view.parts import Part


def times_figure(part: Part, style: Style = REPORT) -> Drawing:
    """Draw each method's measured and published seconds a round, as multiples of `base`, on a logarithmic axis."""
    times, names = part.times, part.names
    assert times is not None
    titles = [entry.title for entry in part.methods if not part.only[0] or entry.title in part.only[0]]
    rows = {title: row for row, title in enumerate(titles)}
    figure = blank(7.4, 0.9 + high(0.42, 7.4, style, 0.3) * len(rows), style)
    axes = figure.subplots()
    tidy(axes, style)
    for label, seconds, colour, marker, shift in (
        ("measured", times.measured, COLOURS[0], "o", -0.16),
        ("published", times.published, GREY, "D", 0.16),
    ):
        multiples = {title: value for title, value in times.multiples(seconds).items() if title in rows}
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
    headline(figure, axes, plain(part.title))
    beside(figure, axes.get_lines())
    measured = f"mean of {seeds_text(times.counts, len(part.seeds))}" if times.counts else "no run has finished"
    caption(figure, [f"measured: {measured}, training without compilation; published: on the paper's machine"])
    return figure
