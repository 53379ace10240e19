"""The named losses from their definitions, and on heads of several widths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.client.objective import Batch, own_outputs
from idiolect.core.losses import LOSSES, half_squared_error, lowest

OUTPUTS = np.array([0.3, -1.2, 2.0, 0.1])
LABEL = 2
ONE_HOT = np.eye(4)[LABEL]


def by_hand(name, outputs, one_hot):
    p, s = np.exp(outputs) / np.exp(outputs).sum(), 1 / (1 + np.exp(-outputs))
    return {
        "cross-entropy": -np.log(p[one_hot > 0][0]),
        "mse": np.mean((p - one_hot) ** 2),
        "bce": np.mean(-one_hot * np.log(s) - (1 - one_hot) * np.log(1 - s)),
    }[name]


@pytest.mark.parametrize("name", LOSSES)
def test_each_is_what_its_name_says(name):
    found = LOSSES[name](jnp.asarray(OUTPUTS), jnp.asarray(LABEL))
    assert float(found) == pytest.approx(by_hand(name, OUTPUTS, ONE_HOT), rel=1e-5)


@pytest.mark.parametrize("output", [2.5, [2.5]])
def test_half_the_squared_error(output):
    value, slope = jax.value_and_grad(half_squared_error)(jnp.asarray(output), jnp.asarray(-0.5))
    assert float(value) == 4.5
    assert float(slope.sum()) == 3.0


@pytest.mark.parametrize("name", LOSSES)
def test_a_client_of_few_classes_has_the_loss_and_gradient_of_a_head_of_its_size(name):
    """Outputs beyond its K_i classes are as if they were not there."""
    batch = Batch(None, jnp.asarray([LABEL]), jnp.ones(1), jnp.asarray(3))

    def wide(outputs):
        return LOSSES[name](own_outputs(outputs[None], batch)[0], jnp.asarray(LABEL))

    def narrow(outputs):
        return LOSSES[name](outputs, jnp.asarray(LABEL))

    value, slope = jax.value_and_grad(wide)(jnp.asarray(OUTPUTS))
    expected, gradient = jax.value_and_grad(narrow)(jnp.asarray(OUTPUTS[:3]))
    assert float(value) == pytest.approx(float(expected), rel=1e-6)
    np.testing.assert_allclose(slope, [*gradient, 0.0], atol=1e-7)
    assert np.isfinite(lowest(jnp.asarray(OUTPUTS)))
