"""The outputs of many clients' models on any rows."""

import equinox as eqx
import jax
import numpy as np
import pytest

from idiolect.runtime.outputs import ROWS, outputs_of

RNG = np.random.default_rng(0)
MODELS = [eqx.nn.Linear(3, 2, key=jax.random.key(i)) for i in range(3)]
PARAMS, STATIC = eqx.partition(MODELS[0], eqx.is_inexact_array)
STACK = jax.tree.map(lambda *leaves: np.stack(leaves), *(eqx.filter(m, eqx.is_inexact_array) for m in MODELS))


@pytest.mark.parametrize("rows", [1, ROWS, 3 * ROWS + 5])
def test_each_row_is_answered_by_its_own_model(rows):
    """W_i x + b_i in float64."""
    x, owners = RNG.normal(size=(rows, 3)).astype(np.float32), RNG.integers(0, 3, rows)
    weights, biases = (np.asarray(leaf, np.float64)[owners] for leaf in jax.tree.leaves(STACK))
    np.testing.assert_allclose(
        outputs_of(STATIC, STACK, owners, x), np.einsum("rof,rf->ro", weights, x) + biases, rtol=1e-5, atol=1e-6
    )


def test_a_rows_outputs_do_not_depend_on_the_other_rows():
    x, owners = RNG.normal(size=(100, 3)).astype(np.float32), RNG.integers(0, 3, 100)
    whole, order = outputs_of(STATIC, STACK, owners, x), RNG.permutation(100)
    np.testing.assert_array_equal(outputs_of(STATIC, STACK, owners[order], x[order]), whole[order])
    np.testing.assert_array_equal(outputs_of(STATIC, STACK, owners[:1], x[:1]), whole[:1])
