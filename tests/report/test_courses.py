"""Lines that coincide are all to be seen, in their panel and in the legend."""

import numpy as np
import pytest

from idiolect.report.courses import Course, draw, stacks
from idiolect.report.looks import Looks
from idiolect.report.style import PALE, blank

ROUNDS = np.arange(0.0, 101.0, 10.0)
RISE = 90 - 50 * np.exp(-ROUNDS / 20)
ENDS = (40.0, 90.0)


def line(method, mean=RISE, model="global", x=ROUNDS, **more):
    return Course(method, model, x, np.asarray(mean, float), np.full(len(x), np.nan), **more)


def grouped(*courses, ends=ENDS):
    return [[course.method for course in group] for group in stacks(courses, ends)]


def test_equal_lines_coincide_and_others_do_not():
    assert grouped(line("a"), line("b", RISE - 5), line("c")) == [["a", "c"], ["b"]]


@pytest.mark.parametrize(("apart", "coincide"), [(0.2, True), (0.5, False)])
def test_less_than_half_a_lines_width_apart_is_the_same_place(apart, coincide):
    assert (grouped(line("a"), line("b", RISE + apart)) == [["a", "b"]]) == coincide


@pytest.mark.parametrize(("rounds", "coincide"), [(2, True), (3, False)])
def test_most_rounds_decide(rounds, coincide):
    apart = np.where(np.arange(11) < rounds, 10.0, 0.0)
    assert (grouped(line("a"), line("b", RISE + apart), ends=(30, 110)) == [["a", "b"]]) == coincide


def test_rounds_outside_the_axis_do_not_count():
    start = np.where(np.arange(11) < 4, -20.0, 0.0)
    assert grouped(line("a"), line("b", RISE + start)) == [["a"], ["b"]]
    assert grouped(line("a"), line("b", RISE + start), ends=(RISE[4], 90)) == [["a", "b"]]
    assert grouped(line("a"), line("b"), ends=(200, 300)) == [["a"], ["b"]]  # nobody sees either
    assert grouped(line("a"), line("b"), ends=(RISE[9], 90)) == [["a"], ["b"]]  # two rounds prove nothing


def test_lines_without_common_rounds_and_without_values():
    assert grouped(line("a"), line("b", x=ROUNDS + 5)) == [["a"], ["b"]]
    assert grouped(line("a", RISE * np.nan), line("b", RISE * np.nan)) == [["a"], ["b"]]


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


def test_the_band_is_around_the_mean():
    course = Course("a", "global", ROUNDS, RISE, np.full(11, 2.0))
    np.testing.assert_allclose([course.low, course.high], [RISE - 2, RISE + 2])
    bounded = Course("a", "global", ROUNDS, RISE, np.full(11, 2.0), bounds=(RISE[1], RISE[-2]))
    assert (bounded.low.min(), bounded.high.max()) == (RISE[1], RISE[-2])
    muted = Course("a", "global", ROUNDS, RISE, np.full(11, 2.0), muted=True)
    np.testing.assert_array_equal(muted.low, RISE)
