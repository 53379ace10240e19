"""Mapping in blocks, and what is pooled on the way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.runtime.blocks import map_pooled


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_pooled_is_the_sum_and_kept_is_stacked(rows):
    x = jnp.arange(3 * rows, dtype=jnp.int32).reshape(rows, 3)
    kept, pooled = jax.jit(lambda x: map_pooled(lambda row: (row.sum(), {"a": row * row, "b": None}), x))(x)
    np.testing.assert_array_equal(kept, x.sum(axis=1))
    np.testing.assert_array_equal(pooled["a"], (x * x).sum(axis=0))
    assert pooled["a"].dtype == jnp.int32
    assert pooled["b"] is None


def test_a_member_of_a_batch_pools_its_own():
    x = jnp.arange(24).reshape(2, 4, 3)
    _, pooled = jax.vmap(lambda one: map_pooled(lambda row: (None, row), one))(x)
    np.testing.assert_array_equal(pooled, x.sum(axis=1))
