"""Newton on sums: exact on a quadratic, damped where a full step would rise, still on what is flat or not finite."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from idiolect.algorithms.parts import newton
from idiolect.algorithms.parts.newton import Newton, Sums, of_layer
from idiolect.client.objective import Batch, objective_of
from idiolect.models import LinearRegression, MultinomialLogistic
from tests.tiers import second

advance, inverse = jax.jit(Newton.advance), jax.jit(newton.inverse)
MATRIX = np.array([[4.0, 1.0], [1.0, 3.0]])
CENTRE = np.array([1.0, -2.0])


def sums_of(loss, gradient, curvature):
    return Sums(*(np.asarray(part, np.float32) for part in (loss, gradient, curvature)))


def quadratic(point):
    gap = np.asarray(point) - CENTRE
    return sums_of(0.5 * gap @ MATRIX @ gap, MATRIX @ gap, MATRIX)


def test_one_step_solves_a_quadratic():
    state = Newton.start(jnp.asarray([5.0, 5.0]))
    state = advance(state, quadratic(state.trial))
    np.testing.assert_allclose(state.best, [5, 5])
    state = advance(state, quadratic(state.trial))
    np.testing.assert_allclose(state.best, CENTRE, atol=1e-5)
    np.testing.assert_allclose(state.direction, 0, atol=1e-5)


def test_a_step_that_raises_the_loss_is_halved_and_forgotten():
    """On sqrt(1 + x^2) full Newton steps diverge from |x| > 1."""
    state = Newton.start(jnp.asarray([3.0]))
    losses = []
    for _ in range(30):
        x = float(state.trial[0])
        root = np.sqrt(1 + x * x)
        state = advance(state, sums_of(root, [x / root], [[root**-3]]))
        losses.append(float(state.loss))
    assert (np.diff(losses) <= 1e-6).all()
    np.testing.assert_allclose(state.best, [0], atol=1e-3)


def test_what_is_not_finite_is_refused():
    state = advance(Newton.start(jnp.asarray([5.0, 5.0])), quadratic([5.0, 5.0]))
    spoilt = sums_of(np.nan, np.full(2, np.nan), np.full((2, 2), np.nan))
    after = advance(state, spoilt)
    np.testing.assert_array_equal(after.best, state.best)
    np.testing.assert_array_equal(after.step, 0.5)


def test_the_inverse_leaves_flat_directions_and_units_alone():
    flat = np.diag([1e8, 1.0, 0.0])
    np.testing.assert_allclose(inverse(flat.astype(np.float32)), np.diag([1e-8, 1.0, 0.0]), rtol=1e-5)
    copies = np.array([[2.0, 2.0], [2.0, 2.0]])
    np.testing.assert_allclose(inverse(copies.astype(np.float32)), np.linalg.pinv(copies), atol=1e-6)
    np.testing.assert_array_equal(inverse(np.full((2, 2), np.nan, np.float32)), np.zeros((2, 2)))


@pytest.mark.parametrize("outputs", [second(1), 2, second(4)])
def test_the_curvature_of_a_layer_is_that_of_automatic_differentiation(outputs: int) -> None:
    """By another way: the second derivative of the loss in all entries of W, b and the own intercept."""
    rng, inputs = np.random.default_rng(0), 3
    classes = outputs > 1
    module = (MultinomialLogistic(inputs, outputs, key=jax.random.key(0)) if classes
              else LinearRegression(inputs, key=jax.random.key(0)))  # fmt: skip
    objective = objective_of(module, "classification" if classes else "regression")
    x = rng.normal(size=(9, inputs)).astype("f4")
    y = rng.integers(0, outputs, 9) if classes else rng.normal(size=9).astype("f4")
    weight = np.array([1.0] * 7 + [0.5, 0.0], "f4")
    theta = rng.normal(size=outputs * (inputs + 2)).astype("f4")

    def outputs_of(theta: Array) -> Array:
        w, b, c = jnp.split(theta, [outputs * inputs, outputs * (inputs + 1)])
        return x @ w.reshape(outputs, inputs).T + b + c

    def loss(theta: Array, batch: Batch) -> Array:
        found = outputs_of(theta)
        return objective.output_loss(found if classes else found[:, 0], batch)

    padded = x.copy()
    padded[8] = np.inf  # padding may hold anything
    found = jax.jit(lambda theta, batch: of_layer(objective, outputs_of(theta), batch))(
        theta, Batch(padded, y, weight)
    )
    np.testing.assert_allclose(found, jax.jit(jax.hessian(loss))(theta, Batch(x, y, weight)), rtol=1e-4, atol=1e-5)
