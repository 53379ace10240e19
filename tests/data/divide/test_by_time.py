import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from idiolect.data.divide.by_time import by_time, overlapping
from idiolect.data.divide.division import counts


def pool(bouts):
    """Windows of two units, one unit apart in a bout: their starts, and which overlap the one before."""
    starts, overlaps, clock = [], [], 0
    for length in bouts:
        starts += [clock + i for i in range(length)]
        overlaps += [False] + [True] * (length - 1)
        clock += length + 1
    return np.array(starts), np.array(overlaps)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
    st.integers(1, 3),
    st.floats(0.05, 0.6),
    st.floats(0.0, 0.3),
)
def test_no_two_splits_share_a_moment(bouts, activities, test, validation):
    starts, overlaps = pool(bouts)
    owner = np.repeat(np.arange(len(bouts)) % activities, bouts)
    series = [np.flatnonzero(owner == k) for k in np.unique(owner)]
    parts = by_time(series, overlaps, test, validation)
    moments = [{t for row in part for t in (starts[row], starts[row] + 1)} for part in parts]
    assert not moments[0] & moments[1]
    assert not moments[0] & moments[2]
    assert not moments[1] & moments[2]
    # One window a cut at most is lost, and none of the test windows.
    dropped = len(starts) - sum(map(len, parts))
    assert dropped <= 2 * len(series)
    assert len(parts[2]) == sum(counts(len(rows), test, validation)[2] for rows in series)


def test_a_cut_inside_a_bout_costs_one_window_and_between_bouts_none():
    _, inside = pool([8])
    assert [part.tolist() for part in by_time([np.arange(8)], inside, 0.25, 0.0)] == [[0, 1, 2, 3, 4], [], [6, 7]]
    _, between = pool([6, 2])
    assert [part.tolist() for part in by_time([np.arange(8)], between, 0.25, 0.0)] == [[0, 1, 2, 3, 4, 5], [], [6, 7]]


def test_the_first_train_and_the_last_test():
    _, overlaps = pool([20])
    train, validation, test = by_time([np.arange(20)], overlaps, 0.25, 0.2)
    assert train.tolist() == list(range(10))
    assert validation.tolist() == [11, 12, 13]
    assert test.tolist() == list(range(15, 20))


def test_a_vanishing_validation_part_does_not_open_a_leak():
    _, overlaps = pool([8])
    train, validation, test = by_time([np.arange(8)], overlaps, 0.25, 0.125)
    assert (train.tolist(), validation.tolist(), test.tolist()) == ([0, 1, 2, 3, 4], [], [6, 7])


def test_overlap_across_two_series_is_seen():
    """Window 3 ends one activity's training part, window 4 is another activity's test part."""
    overlaps = np.array([False, True, True, True, True, True])
    train, _, test = by_time([np.array([0, 1, 5]), np.array([2, 3, 4])], overlaps, 0.3, 0.0)
    assert not overlapping(train, test, overlaps).any()
    assert test.tolist() == [4, 5]
    assert train.tolist() == [0, 1, 2]


def test_overlapping_looks_both_ways():
    _, overlaps = pool([3, 3])
    rows = np.arange(6)
    assert overlapping(rows, np.array([1]), overlaps).tolist() == [True, False, True, False, False, False]
    assert overlapping(rows, np.array([2, 5]), overlaps).tolist() == [False, True, False, False, True, False]
