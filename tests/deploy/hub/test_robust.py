"""The geometric median by inner products, against ByzFL's values, and messages limited by it."""

import numpy as np
import pytest

from idiolect.deploy.hub.robust import distances_from, median_shares, pulled

ROWS = np.array([[1, 2, 0], [2, 1, 1], [0, 1, 2], [1, 0, 1], [2, 2, 3], [10, -10, 5], [-8, 12, -6]], float)
MEDIAN = [1.2963393001, 1.0248782578, 1.1843343502]
"""ByzFL 0.0.11, `GeometricMedian(nu=1e-6, T=200)`, of these rows."""


def test_the_geometric_median_is_that_of_byzfl():
    shares = median_shares(ROWS @ ROWS.T)
    np.testing.assert_allclose(shares @ ROWS, MEDIAN, atol=1e-7)
    assert shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(
        distances_from(ROWS @ ROWS.T, shares), np.linalg.norm(ROWS - MEDIAN, axis=1), rtol=1e-6
    )


def test_the_order_of_messages_does_not_matter():
    order = [3, 6, 0, 5, 2, 4, 1]
    moved = ROWS[order]
    np.testing.assert_allclose(median_shares(moved @ moved.T), median_shares(ROWS @ ROWS.T)[order], atol=1e-9)


@pytest.mark.parametrize("lie", [1e2, 1e10, 1e30])
def test_fewer_than_half_cannot_move_the_median_beyond_the_others(lie):
    rows = np.vstack([ROWS[:5], [[lie] * 3] * 2])
    honest = np.linalg.norm(ROWS[:5] - ROWS[:5].mean(0), axis=1).max()
    assert np.linalg.norm(median_shares(rows @ rows.T) @ rows - ROWS[:5].mean(0)) < 3 * honest


@pytest.mark.parametrize(("most", "apart"), [(1.0, 2), (3.0, 2), (1e6, 0)])
def test_far_messages_become_the_median_of_the_others_and_none_is_further_than_the_unit(most, apart):
    mixing, ratios = pulled(ROWS @ ROWS.T, most)
    if most == 1.0:
        assert (ratios <= 1).sum() >= 4  # half of all are never left out
        return
    near = ROWS[ratios <= most]
    assert len(near) == 7 - apart
    median = median_shares(near @ near.T) @ near
    far = np.linalg.norm(ROWS - median, axis=1)
    unit = np.sort(far)[3]
    np.testing.assert_allclose(ratios, far / unit, rtol=1e-6)
    expected = np.where(ratios > most, 0.0, np.minimum(ratios, 1)) * unit
    np.testing.assert_allclose(np.linalg.norm(mixing @ ROWS - median, axis=1), expected, atol=1e-6)
    np.testing.assert_array_equal(mixing[ratios <= 1], np.eye(7)[ratios <= 1])


@pytest.mark.parametrize("lie", [10.0, 1e6, 1e30])
def test_a_lie_that_is_far_moves_no_message_at_all(lie):
    rows = np.vstack([ROWS[:5], [[lie] * 3]])
    without = np.vstack([ROWS[:5], [[-7 * lie] * 3]])
    one, other = (pulled(r @ r.T, 3.0)[0] @ r for r in (rows, without))
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_equal_messages_and_what_only_one_site_trains_are_not_pulled():
    for rows in (np.ones((4, 3)), np.array([[0.0], [0.0], [0.0], [5.0]])):
        mixing, ratios = pulled(rows @ rows.T, 1.0)
        np.testing.assert_array_equal(mixing, np.eye(4))
        assert ratios.tolist() == [0.0] * 4
