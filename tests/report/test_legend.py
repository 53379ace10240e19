import pytest
from matplotlib.lines import Line2D

from idiolect.report.legend import LONGEST, beside, heading, wrapped
from idiolect.report.style import blank, paper


@pytest.mark.parametrize("width", [3.25, 6.75])
def test_a_papers_legend_is_below_and_inside_the_column(width):
    figure = blank(6, 4, paper(width))
    axes = figure.subplots()
    axes.set_xlabel("round")
    before = figure.get_figheight()
    beside(
        figure, [heading("method"), *(Line2D([], [], label=f"a rather long method, number {i}") for i in range(9))]
    )
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert figure.get_figwidth() == width
    assert figure.get_figheight() > before
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert 0 <= box.y0 < box.y1 <= axes.xaxis.label.get_window_extent().y0
    assert [text.get_text().split(",")[0] for text in figure.legends[0].get_texts()] == ["a rather long method"] * 9


def test_coinciding_lines_are_wrapped_name_by_name():
    figure = blank(6, 4)
    beside(figure, [heading("coincide")], {"one long name of a method\nanother": (Line2D([], []), Line2D([], []))})
    assert figure.legends[0].get_texts()[1].get_text() == "one long name of a method\nanother"


def test_a_name_that_no_figure_has_room_for_is_cut():
    assert wrapped("x " * 5000).count("x") <= LONGEST
    assert len(wrapped("y" * 10_000)) < 2 * LONGEST
