"""A client's sums against numpy, its intercept against its equation, and rows' ways down a tree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.parts.boosting import Grown, histograms, own_intercept, routed, sums_of
from idiolect.algorithms.parts.trees import Rules
from idiolect.client.objective import Batch
from idiolect.models.forest import packed

RULES = Rules(0.0, 0.0, 0.0, 1.0, 0.0, 1, 1, 1)


def logistic(scores, y):
    return jnp.logaddexp(0.0, scores[0]) - y * scores[0]


def test_histograms_are_sums_per_node_feature_and_bin():
    rng = np.random.default_rng(0)
    bins, place = rng.integers(0, 5, (3, 40)).astype(np.uint8), rng.integers(0, 7, 40)
    sums, at = rng.normal(size=(40, 3)).astype(np.float32), np.array([4, 2, 7])
    got = np.asarray(histograms(*map(jnp.asarray, (bins, place, sums, at)), 5, 7))
    expected = np.zeros((3, 3, 5, 3))
    for slot, node in enumerate(at[:2]):  # the last is none
        for f in range(3):
            np.add.at(expected[slot, f], bins[f, place == node], sums[place == node])
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_gradient_and_curvature_of_padding_are_nothing():
    y, scores = jnp.asarray([1.0, 0.0, 1.0]), jnp.asarray([[0.3], [-2.0], [jnp.nan]])
    batch = Batch(jnp.zeros((3, 1)), y, jnp.asarray([1.0, 1.0, 0.0]))
    p = 1 / (1 + np.exp(-np.array([0.3, -2.0])))
    expected = np.column_stack([p - [1, 0], p * (1 - p), [1, 1]])
    np.testing.assert_allclose(sums_of(logistic, scores, batch)[0], [*expected, [0, 0, 0]], atol=1e-6)


@pytest.mark.parametrize("penalty", [0.01, 3.0])
def test_the_intercept_solves_its_equation_also_from_far_away(x64, penalty):
    rng = np.random.default_rng(0)
    scores, y = rng.normal(3, 2, (50, 1)), (rng.random(50) < 0.1).astype(float)
    batch = Batch(jnp.zeros((50, 1)), jnp.asarray(y), jnp.ones(50))
    for start in (0.0, 20.0):
        solve = jax.jit(lambda s, w: own_intercept(logistic, jnp.asarray(scores), batch, penalty, s, w))
        b = float(solve(jnp.asarray([start]), jnp.asarray(True))[0])
        assert abs(np.sum(1 / (1 + np.exp(-scores[:, 0] - b)) - y) + penalty * b) < 1e-6
        assert float(solve(jnp.asarray([start]), jnp.asarray(False))[0]) == start


@pytest.mark.parametrize(("gradient", "side"), [(-6.0, True), (6.0, False)])
def test_a_client_finds_its_side_by_its_own_sums(gradient, side):
    """The root divides by feature 0, missing values go left; its right child divides the clients."""
    whole = lambda *values: jnp.asarray(values, jnp.int32)  # noqa: E731
    zero = jnp.zeros(2)
    tree = Grown(
        whole(0, 2),
        whole(0, 1),
        whole(1, 0),
        jnp.asarray([True, False]),
        zero - 9,
        zero,
        zero,
        None,
        zero,
        jnp.zeros(5),
    )
    bins = jnp.asarray([[0, 1, 2, 3, 4]], jnp.uint8)
    sums = jnp.column_stack([jnp.full(5, gradient), jnp.ones(5), jnp.ones(5)])
    place, sides = routed(tree, bins, sums, RULES, 4)
    np.testing.assert_array_equal(place, [1, 1, 3 if side else 4, 3 if side else 4, 1])
    np.testing.assert_array_equal(sides, [False, side])


def test_a_set_of_categories_goes_left_and_rows_without_one_go_right():
    """The root divides 64 categories by a set, its left child a number; 64 is the bin of rows without a category."""
    whole = lambda *values: jnp.asarray(values, jnp.int32)  # noqa: E731
    zero, inside = jnp.zeros(2), jnp.zeros(65, bool).at[jnp.asarray([3, 40, 63])].set(True)
    members = jnp.stack([packed(inside), jnp.zeros(3, jnp.uint32)])
    tree = Grown(
        whole(0, 1),
        whole(0, 1),
        whole(0, 7),
        jnp.asarray([True, True]),
        zero,
        zero,
        zero,
        members,
        zero,
        jnp.zeros(5),
    )
    bins = jnp.asarray([[3, 40, 63, 0, 8, 64, 64], [7, 8, 64, 7, 8, 7, 64]], jnp.uint8)
    place, _ = routed(tree, bins, jnp.ones((7, 3)), RULES, 64)
    np.testing.assert_array_equal(place, [3, 4, 3, 2, 2, 2, 2])
