"""Newton on sums: exact on a quadratic, damped where a full step would rise, still on what is flat or not finite."""

import jax.numpy as jnp
import numpy as np

from idiolect.algorithms.parts.newton import Newton, Sums, inverse

MATRIX = np.array([[4.0, 1.0], [1.0, 3.0]])
CENTRE = np.array([1.0, -2.0])


def quadratic(point):
    gap = np.asarray(point) - CENTRE
    return Sums(jnp.asarray(0.5 * gap @ MATRIX @ gap), jnp.asarray(MATRIX @ gap), jnp.asarray(MATRIX))


def test_one_step_solves_a_quadratic():
    state = Newton.start(jnp.asarray([5.0, 5.0]))
    state = state.advance(quadratic(state.trial))
    np.testing.assert_allclose(state.best, [5, 5])
    state = state.advance(quadratic(state.trial))
    np.testing.assert_allclose(state.best, CENTRE, atol=1e-5)
    np.testing.assert_allclose(state.direction, 0, atol=1e-5)


def test_a_step_that_raises_the_loss_is_halved_and_forgotten():
    """On sqrt(1 + x^2) full Newton steps diverge from |x| > 1."""
    state = Newton.start(jnp.asarray([3.0]))
    losses = []
    for _ in range(30):
        x = float(state.trial[0])
        root = np.sqrt(1 + x * x)
        sums = Sums(jnp.asarray(root), jnp.asarray([x / root]), jnp.asarray([[root**-3]]))
        state = state.advance(sums)
        losses.append(float(state.loss))
    assert (np.diff(losses) <= 1e-6).all()
    np.testing.assert_allclose(state.best, [0], atol=1e-3)


def test_what_is_not_finite_is_refused():
    state = Newton.start(jnp.asarray([5.0, 5.0])).advance(quadratic([5.0, 5.0]))
    spoilt = Sums(jnp.asarray(jnp.nan), jnp.full(2, jnp.nan), jnp.full((2, 2), jnp.nan))
    after = state.advance(spoilt)
    np.testing.assert_array_equal(after.best, state.best)
    np.testing.assert_array_equal(after.step, 0.5)


def test_the_inverse_leaves_flat_directions_and_units_alone():
    flat = np.diag([1e8, 1.0, 0.0])
    np.testing.assert_allclose(inverse(jnp.asarray(flat)), np.diag([1e-8, 1.0, 0.0]), rtol=1e-5)
    copies = np.array([[2.0, 2.0], [2.0, 2.0]])
    np.testing.assert_allclose(inverse(jnp.asarray(copies)), np.linalg.pinv(copies), atol=1e-6)
    np.testing.assert_array_equal(inverse(jnp.full((2, 2), jnp.nan)), np.zeros((2, 2)))
