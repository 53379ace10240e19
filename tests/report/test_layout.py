"""What pictures and the page show alike: the axis, the lines drawn, those outside it, and those that coincide."""

import numpy as np
import pytest

from idiolect.metrics.registry import METRICS
from idiolect.report.figures import outside_text
from idiolect.report.layout import COLOURS, Course, limits, stacks, thinned
from idiolect.report.style import Looks

ACCURACY = METRICS["accuracy"]
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


def test_the_start_counts_where_there_is_none():
    rise = [Course(name, "global", ROUNDS, np.r_[10.0, np.full(10, level)], np.zeros(11))
            for name, level in (("a", 90), ("b", 91))]  # fmt: skip
    assert limits(rise, rising=True, settled=0)[0] < 10


def ending(method, model, last):
    return Course(method, model, np.array([0.0, 1.0]), np.array([0.1, last]), np.full(2, np.nan))


def many(methods, models=("personal", "global")):
    return [ending(f"m{i}", model, i / 100) for i in range(methods) for model in models]


def test_few_lines_are_all_drawn():
    crowd = thinned(many(3), (), ACCURACY, 16)
    assert (len(crowd.lines), crowd.muted, crowd.told) == (6, frozenset(), "")


def test_many_models_leave_each_methods_first():
    crowd = thinned(many(10), (), ACCURACY, 16)
    assert crowd.lines == {(f"m{i}", "personal") for i in range(10)}
    assert not crowd.muted
    assert crowd.told == "drawn: each method's first model (10 other lines left out)"


def test_of_many_methods_the_best_and_local_keep_their_colour():
    crowd = thinned(many(24), (), ACCURACY, 16, "m0")
    kept = {f"m{i}" for i in range(24)} - crowd.muted
    assert kept == {"m0", *(f"m{i}" for i in range(24 - len(COLOURS), 24))}
    assert crowd.grey == "others"
    assert crowd.told.endswith("in colour: the 7 methods with the best last score, and Local")
    worst = thinned(many(24), (), METRICS["mse"], 16)
    assert "m0" not in worst.muted
    assert "m23" in worst.muted


def test_settings_that_were_not_chosen_are_no_crowd():
    crowd = thinned(many(24, ("personal",)), {f"m{i}" for i in range(20)}, ACCURACY, 16)
    assert len(crowd.muted) == 20
    assert crowd.grey == "not chosen"


SLOW = 90 - 50 * np.exp(-ROUNDS / 20)
AXIS = (40.0, 90.0)


def curve(method, mean=SLOW, model="global", x=ROUNDS, **more):
    return Course(method, model, x, np.asarray(mean, float), np.full(len(x), np.nan), **more)


def grouped(*courses, ends=AXIS):
    return [[course.method for course in group] for group in stacks(courses, ends)]


def test_equal_lines_coincide_and_others_do_not():
    assert grouped(curve("a"), curve("b", SLOW - 5), curve("c")) == [["a", "c"], ["b"]]


@pytest.mark.parametrize(("apart", "coincide"), [(0.2, True), (0.5, False)])
def test_less_than_half_a_lines_width_apart_is_the_same_place(apart, coincide):
    assert (grouped(curve("a"), curve("b", SLOW + apart)) == [["a", "b"]]) == coincide


@pytest.mark.parametrize(("rounds", "coincide"), [(2, True), (3, False)])
def test_most_rounds_decide(rounds, coincide):
    apart = np.where(np.arange(11) < rounds, 10.0, 0.0)
    assert (grouped(curve("a"), curve("b", SLOW + apart), ends=(30, 110)) == [["a", "b"]]) == coincide


def test_rounds_outside_the_axis_do_not_count():
    start = np.where(np.arange(11) < 4, -20.0, 0.0)
    assert grouped(curve("a"), curve("b", SLOW + start)) == [["a"], ["b"]]
    assert grouped(curve("a"), curve("b", SLOW + start), ends=(SLOW[4], 90)) == [["a", "b"]]
    assert grouped(curve("a"), curve("b"), ends=(200, 300)) == [["a"], ["b"]]  # nobody sees either
    assert grouped(curve("a"), curve("b"), ends=(SLOW[9], 90)) == [["a"], ["b"]]  # two rounds prove nothing


def test_lines_without_common_rounds_and_without_values():
    assert grouped(curve("a"), curve("b", x=ROUNDS + 5)) == [["a"], ["b"]]
    assert grouped(curve("a", SLOW * np.nan), curve("b", SLOW * np.nan)) == [["a"], ["b"]]


def test_the_band_is_around_the_mean():
    course = Course("a", "global", ROUNDS, SLOW, np.full(11, 2.0))
    np.testing.assert_allclose([course.low, course.high], [SLOW - 2, SLOW + 2])
    bounded = Course("a", "global", ROUNDS, SLOW, np.full(11, 2.0), bounds=(SLOW[1], SLOW[-2]))
    assert (bounded.low.min(), bounded.high.max()) == (SLOW[1], SLOW[-2])
    muted = Course("a", "global", ROUNDS, SLOW, np.full(11, 2.0), muted=True)
    np.testing.assert_array_equal(muted.low, SLOW)
