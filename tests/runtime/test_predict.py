"""Each row is predicted by its own client's model."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.client.objective import objective_of
from idiolect.runtime.predict import ROWS, outputs_of

RNG = np.random.default_rng(0)
MODELS = [eqx.nn.Linear(3, 2, key=jax.random.key(i)) for i in range(3)]
OBJECTIVE = objective_of(MODELS[0], "classification")
STACK = jax.tree.map(lambda *leaves: np.stack(leaves), *(eqx.filter(m, eqx.is_inexact_array) for m in MODELS))


@pytest.mark.parametrize("rows", [1, ROWS, 3 * ROWS + 5])
def test_each_row_is_answered_by_its_own_model(rows):
    """W_i x + b_i in float64."""
    x, owners = RNG.normal(size=(rows, 3)).astype(np.float32), RNG.integers(0, 3, rows)
    weights, biases = (np.asarray(leaf, np.float64)[owners] for leaf in jax.tree.leaves(STACK))
    np.testing.assert_allclose(
        outputs_of(OBJECTIVE, STACK, owners, x)[0], np.einsum("rof,rf->ro", weights, x) + biases, rtol=1e-5, atol=1e-6
    )


def test_a_rows_outputs_do_not_depend_on_the_other_rows():
    x, owners = RNG.normal(size=(100, 3)).astype(np.float32), RNG.integers(0, 3, 100)
    (whole, _), order = outputs_of(OBJECTIVE, STACK, owners, x), RNG.permutation(100)
    np.testing.assert_array_equal(outputs_of(OBJECTIVE, STACK, owners[order], x[order])[0], whole[order])
    np.testing.assert_array_equal(outputs_of(OBJECTIVE, STACK, owners[:1], x[:1])[0], whole[:1])


class Picky(eqx.Module):
    """w x, one number; only for samples whose first feature is not negative."""

    w: jax.Array

    def __call__(self, x):
        return self.w @ x

    def usable(self, x):
        return (x[0] >= 0).astype(jnp.float32)


def test_rows_that_a_model_cannot_use_are_marked_and_a_scalar_output_has_no_axis():
    weights = RNG.normal(size=(3, 2)).astype(np.float32)
    x, owners = RNG.normal(size=(70, 2)).astype(np.float32), RNG.integers(0, 2, 70)  # client 2 has no row
    objective = objective_of(Picky(jnp.asarray(weights[0])), "regression")
    models = eqx.filter(Picky(jnp.asarray(weights)), eqx.is_inexact_array)
    outputs, usable = outputs_of(objective, models, owners, x)
    np.testing.assert_allclose(outputs, (weights[owners] * x).sum(axis=1), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(usable, x[:, 0] >= 0)
