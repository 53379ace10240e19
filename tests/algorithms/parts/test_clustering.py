"""Division of clients against all possible divisions."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.parts.clustering import directions, divide

MOST = 4
divided = jax.jit(divide, static_argnames="most")


def points(seed, count=8, width=3):
    """Directions around three random ones."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, width))
    found = centres[rng.integers(3, size=count)] + 0.4 * rng.normal(size=(count, width))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype("f4")


def found_by(x, groups, present=None, ids=None, most=MOST):
    present = np.ones(len(x), bool) if present is None else present
    ids = np.arange(len(x), dtype=np.int32) if ids is None else ids
    return np.asarray(divided(jnp.asarray(x), jnp.asarray(present), jnp.asarray(ids), groups, most=most))


def cost(x, labels):
    """The sum of squared distances to the means of the groups, in double precision."""
    x = x.astype(float)
    return sum(((x[labels == k] - x[labels == k].mean(axis=0)) ** 2).sum() for k in np.unique(labels))


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_no_division_has_a_smaller_sum_of_squares(groups, seed):
    x = points(seed)
    slots = found_by(x, float(groups))
    assert (slots.sum(axis=1) == 1).all()
    assert not slots[:, groups:].any()
    least = min(cost(x, np.array(labels)) for labels in product(range(groups), repeat=len(x)))
    np.testing.assert_allclose(cost(x, slots.argmax(axis=1)), least, rtol=1e-5)


def test_neither_order_nor_padding_nor_masked_groups_change_a_group():
    x = points(5, count=9)
    plain, order = found_by(x, 3.0), np.random.default_rng(0).permutation(9)
    np.testing.assert_array_equal(found_by(x[order], 3.0, ids=order.astype(np.int32)), plain[order])
    np.testing.assert_array_equal(found_by(x, 3.0, most=3), plain[:, :3])
    padded = np.concatenate([np.full((2, 3), np.nan, "f4"), x])
    present, ids = np.arange(11) >= 2, np.arange(11, dtype=np.int32) - 2
    slots = found_by(padded, 3.0, present, np.maximum(ids, 0))
    np.testing.assert_array_equal(slots[2:], plain)
    assert not slots[:2].any()


def test_the_groups_are_numbered_by_their_lowest_client():
    x = np.array([[1, 0], [-1, 0], [1, 0], [-1, 0]], "f4")
    np.testing.assert_array_equal(found_by(x, 2).argmax(axis=1), [0, 1, 0, 1])
    np.testing.assert_array_equal(found_by(x, 2, ids=np.array([7, 3, 5, 9], np.int32)).argmax(axis=1), [1, 0, 1, 0])
    assert (found_by(x, 3)[:, :2].sum(axis=1) == 1).all()  # the third is empty, and comes after those in use


def test_a_direction_is_the_centred_weights_scaled_to_length_one():
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(size=(4, 2, 3)).astype("f4"), rng.normal(size=(4, 2)).astype("f4")
    present = np.array([True, True, False, True])
    kept = weight[present].reshape(3, -1)
    centred = kept - kept.mean(axis=0)
    weight[2] = np.nan
    found = jax.jit(directions)({"bias": jnp.asarray(bias), "weight": jnp.asarray(weight)}, jnp.asarray(present))
    np.testing.assert_allclose(found[present], centred / np.linalg.norm(centred, axis=1, keepdims=True), rtol=1e-5)
    assert not np.asarray(found)[2].any()
    only = jax.jit(directions)({"bias": jnp.asarray(bias)}, jnp.ones(4, bool))  # no weights: every leaf counts
    centred = bias - bias.mean(axis=0)
    np.testing.assert_allclose(only, centred / np.linalg.norm(centred, axis=1, keepdims=True), rtol=1e-5)


def test_equal_models_have_no_direction():
    assert not np.asarray(directions({"w": jnp.ones((3, 2, 2))}, jnp.ones(3, bool))).any()
