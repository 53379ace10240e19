"""The geometric median by inner products, against ByzFL's values, and messages pulled towards it."""

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


@pytest.mark.parametrize("most", [0.0, 0.5, 1.0, 3.0])
def test_messages_are_pulled_to_the_distance_and_others_stay(most):
    mixing, ratios = pulled(ROWS @ ROWS.T, most)
    after = np.linalg.norm(mixing @ ROWS - MEDIAN, axis=1)
    unit = np.sort(np.linalg.norm(ROWS - MEDIAN, axis=1))[3]
    np.testing.assert_allclose(after, np.minimum(ratios, most) * unit, atol=1e-6)
    for place in np.flatnonzero(ratios <= most):
        assert mixing[place].tolist() == np.eye(7)[place].tolist()


def test_equal_messages_and_what_only_one_site_trains_are_not_pulled():
    for rows in (np.ones((4, 3)), np.array([[0.0], [0.0], [0.0], [5.0]])):
        mixing, ratios = pulled(rows @ rows.T, 1.0)
        np.testing.assert_array_equal(mixing, np.eye(4))
        assert ratios.tolist() == [0.0] * 4
