"""Lines that coincide are all to be seen, in their panel and in the legend."""

import numpy as np

from idiolect.report.courses import arrows, draw
from idiolect.report.layout import COLOURS, Course, limits
from idiolect.report.looks import Looks
from idiolect.report.style import PALE, blank

ROUNDS = np.arange(0.0, 101.0, 10.0)
RISE = 90 - 50 * np.exp(-ROUNDS / 20)
ENDS = (40.0, 90.0)


def line(method, mean=RISE, model="global", x=ROUNDS, **more):
    return Course(method, model, x, np.asarray(mean, float), np.full(len(x), np.nan), **more)


def drawn(*courses, ends=ENDS):
    looks = Looks([(c.method, c.model) for c in courses], muted={c.method for c in courses if c.muted})
    figure = blank(4, 3)
    axes = figure.subplots()
    return draw(axes, courses, looks, ends), {line.get_label(): line for line in axes.lines}


def test_the_later_of_two_equal_lines_is_dashed_over_the_earlier():
    entries, lines = drawn(line("a", model="personal"), line("b", RISE - 5, "personal"), line("c", model="personal"))
    assert [lines[name].get_linestyle() for name in ("a personal", "b personal", "c personal")] == ["-", "-", "--"]
    assert list(lines) == ["a personal", "b personal", "c personal"]  # c above a
    ((text, handles),) = entries.items()
    assert text == "a personal\nc personal"
    for handle, name in zip(handles, ("a personal", "c personal"), strict=True):
        shown = lines[name]
        assert (handle.get_color(), handle._dash_pattern) == (shown.get_color(), shown._dash_pattern)
    assert handles[0].get_color() != handles[1].get_color()


def test_of_two_equal_lines_of_one_colour_one_is_wider():
    _, lines = drawn(line("a", model="personal"), line("a", model="local"), line("b", RISE - 5))
    assert lines["a local"].get_linewidth() == 2 * lines["a personal"].get_linewidth()


def test_single_points_that_coincide_are_a_dot_in_a_ring():
    one = {"x": np.array([5.0])}
    _, lines = drawn(line("a", [50], **one), line("b", [50], **one))
    dot, ring = lines.values()
    assert (ring.get_markerfacecolor(), ring.get_marker()) == ("none", "o")
    assert ring.get_markersize() > dot.get_markersize()


def test_a_setting_that_was_not_chosen_is_below_and_covers_nobody():
    entries, lines = drawn(line("a", muted=True), line("b"))
    assert entries == {}
    assert list(lines) == ["a global", "b global"]
    assert lines["a global"].get_color() == PALE
    assert lines["a global"].get_zorder() < lines["b global"].get_zorder()


def test_an_arrow_stands_where_a_line_would_be():
    courses = [line(name, level + 0 * RISE) for name, level in zip("abcd", (20, 90, 91, 92), strict=True)]
    axes = blank(4, 3).subplots()
    ends = limits(courses, rising=True)
    arrows(axes, courses, ends, Looks([(c.method, c.model) for c in courses]))
    (arrow,) = axes.lines
    assert (arrow.get_marker(), arrow.get_color(), list(arrow.get_ydata())) == ("v", COLOURS[0], [0.0])
