"""One or two bad lines may lie outside the axis, if the others could not be told apart beside them."""

import numpy as np
import pytest

from idiolect.report.courses import Course
from idiolect.report.limits import arrows, limits, outside_text
from idiolect.report.looks import COLOURS, Looks
from idiolect.report.style import blank

ROUNDS = np.arange(0.0, 101.0, 10.0)
CHANGE = np.linspace(0, 0.2, 11)


def line(method, level, std=0.0, **more):
    return Course(method, "global", ROUNDS, level + CHANGE, np.full(11, std), **more)


def lines(*levels):
    return [line(chr(ord("a") + i), level) for i, level in enumerate(levels)]


def told(courses, *, rising=True):
    ends = limits(courses, rising=rising)
    looks = Looks([(c.method, c.model) for c in courses], {"a": "Bad"})
    return ends, outside_text(courses, ends, looks, "it")


def test_a_bad_line_does_not_hide_the_differences_of_the_others():
    (low, high), said = told(lines(20, 90, 91, 92))
    assert 89 < low < 90
    assert 92.2 < high < 93
    assert said == "below the axis of it: Bad global"


def test_where_less_is_better_the_bad_one_is_above():
    (low, high), said = told(lines(20, 1, 2, 3), rising=False)
    assert 0 < low < 1
    assert 3.2 < high < 4
    assert said == "above the axis of it: Bad global"


def test_the_best_line_is_always_shown():
    (low, high), said = told(lines(20, 21, 22, 90))
    assert (low < 20, high > 90.2, said) == (True, True, "")


@pytest.mark.parametrize(("worst", "outside"), [(84, False), (78, True)])
def test_a_line_that_needs_little_room_stays(worst, outside):
    (low, _), said = told(lines(worst, 88, 90, 92))
    assert (low > worst + 0.2) == outside == bool(said)


def test_two_bad_lines_but_not_three():
    assert told(lines(10, 50, 90, 91, 92))[1] == "below the axis of it: Bad global and b global"
    assert told(lines(10, 30, 50, 90, 91, 92, 93))[1] == ""
    assert told(lines(10, 30, 91, 92))[1] == ""  # they are half of the lines


def test_two_lines_are_both_shown_and_so_is_who_differs_from_equal_ones():
    assert told(lines(10, 90))[1] == ""
    assert told(lines(10, 90, 90))[1] == ""
    assert told(lines(10, 90, 90, 91))[1] == "below the axis of it: Bad global"


def test_settings_that_were_not_chosen_may_lie_outside_up_to_half_of_all_lines():
    grey = [line(f"grey {i}", 10 * i, muted=True) for i in range(5)]
    good = [line(name, level) for name, level in zip("uvwxyz", range(90, 96), strict=True)]
    (low, _), said = told([*grey, *good])
    assert 89 < low < 90
    assert said == "below the axis of it: 5 of the lines not chosen"
    assert told([*grey, *good[:5]])[1] == ""


def test_a_wide_band_may_be_cut_and_is_named():
    courses = [line("a", 90.5, std=40), line("b", 90), line("c", 91), line("d", 92)]
    (low, high), said = told(courses)
    assert 89 < low < 90.5 < high < 93
    assert said == "partly below the axis of it: Bad global; partly above the axis of it: Bad global"


def test_a_steep_start_is_outside_and_needs_no_name():
    rise = [Course(name, "global", ROUNDS, np.r_[10.0, np.full(10, level)], np.zeros(11))
            for name, level in (("a", 90), ("b", 91))]  # fmt: skip
    (low, _), said = told(rise)
    assert (low > 89, said) == (True, "")


def test_lines_without_values():
    assert limits([line("a", np.nan)], rising=True) == (0.0, 1.0)
    (low, high), said = told([line("a", np.nan), line("b", 90), line("c", 91)])
    assert (low < 90, high > 91.2, said) == (True, True, "")


def test_an_arrow_stands_where_a_line_would_be():
    courses = lines(20, 90, 91, 92)
    axes = blank(4, 3).subplots()
    ends = limits(courses, rising=True)
    arrows(axes, courses, ends, Looks([(c.method, c.model) for c in courses]))
    (arrow,) = axes.lines
    assert (arrow.get_marker(), arrow.get_color(), list(arrow.get_ydata())) == ("v", COLOURS[0], [0.0])


def test_the_start_counts_where_there_is_none():
    rise = [Course(name, "global", ROUNDS, np.r_[10.0, np.full(10, level)], np.zeros(11))
            for name, level in (("a", 90), ("b", 91))]  # fmt: skip
    assert limits(rise, rising=True, settled=0)[0] < 10
