"""The losses of dual methods against suprema, derivatives and minima found by brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, xlogy

from idiolect.algorithms.parts.conjugates import LOSSES

numbers = st.floats(-20, 20)
shares = st.floats(0, 1)
signs = st.sampled_from([-1.0, 1.0])


def at(name, field, *values):
    """A field of a loss at scalars, in double precision."""
    with jax.enable_x64(True):
        return float(getattr(LOSSES[name], field)(*(jnp.asarray(v, jnp.float64) for v in values)))


def known(name, z, y):
    """The loss by its textbook formula."""
    return {
        "hinge": max(0.0, 1 - y * z),
        "logistic": np.log1p(np.exp(-abs(z))) + max(0.0, -y * z),
        "squared": (z - y) ** 2 / 2,
    }[name]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("y", [-1.0, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.97, 1.0])
def test_the_conjugate_is_the_supremum(name, y, share):
    """sup_z -a z - l(z; y); at the ends of its domain the supremum of the logistic loss is only approached."""
    a = y * share
    best = minimize_scalar(
        lambda z: a * z + known(name, z, y), bounds=(-40, 40), options={"xatol": 1e-10}, method="bounded"
    )
    assert at(name, "conjugate", a, y) == pytest.approx(-best.fun, abs=1e-6)


def test_the_squared_loss_takes_any_target():
    for a, y in ((-3.0, 2.5), (4.0, -0.7)):
        best = minimize_scalar(lambda z, a=a, y=y: a * z + (z - y) ** 2 / 2)
        assert at("squared", "conjugate", a, y) == pytest.approx(-best.fun, abs=1e-9)


@pytest.mark.parametrize("name", ["hinge", "logistic"])
def test_the_conjugate_is_infinite_outside_its_domain(name):
    for y in (-1.0, 1.0):
        for share in (-0.01, 1.01, -5.0):
            assert at(name, "conjugate", y * share, y) == np.inf


@pytest.mark.parametrize("name", LOSSES)
@settings(deadline=None, max_examples=60)
@given(z=numbers, y=signs, share=shares, free=numbers)
def test_fenchel_young(name, z, y, share, free):
    """l(z) + l*(-a) + a z >= 0."""
    a = free if name == "squared" else y * share
    assert known(name, z, y) == pytest.approx(at(name, "value", z, y), abs=1e-12)
    assert at(name, "value", z, y) + at(name, "conjugate", a, y) + a * z >= -1e-12


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_fenchel_young_is_an_equality_at_the_derivative_and_nowhere_else(name, y, x64):
    loss = LOSSES[name]
    z = jnp.linspace(-6, 6, 41) + 1e-3
    a = -jax.vmap(jax.grad(lambda z: loss.value(z, jnp.asarray(y))))(z)
    labels = jnp.full_like(z, y)
    gap = lambda a: loss.value(z, labels) + loss.conjugate(a, labels) + a * z  # noqa: E731
    np.testing.assert_allclose(gap(a), 0, atol=1e-12)
    for step in (-1e-3, 1e-3):
        assert (gap(a + step) > 1e-9).all()


def cases(rng, count=4000):
    """(a, z, y, q) over many orders of magnitude, a at the ends of its domain too."""
    y = rng.choice([-1.0, 1.0], count)
    share = np.where(rng.random(count) < 0.3, rng.integers(0, 2, count), rng.random(count) ** 3)
    z = rng.normal(size=count) * 10 ** rng.uniform(-2, 2, count)
    return y * share, z, y, 10 ** rng.uniform(-5, 5, count)


def value(name, new, a, z, y, q):
    """What a coordinate step minimises, by numpy."""
    b = np.clip(y * new, 0, 1)
    conjugate = {"hinge": -b, "logistic": xlogy(b, b) + xlogy(1 - b, 1 - b), "squared": new**2 / 2 - new * y}[name]
    return conjugate + (new - a) * z + q / 2 * (new - a) ** 2


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_step_is_the_minimum_along_its_coordinate(name, dtype):
    """No point of a fine grid, in the domain or around the step, is lower."""
    a, z, y, q = cases(np.random.default_rng(0))
    with jax.enable_x64(dtype == "float64"):
        new = np.asarray(LOSSES[name].ascend(*(jnp.asarray(v, dtype) for v in (a, z, y, q))), np.float64)
    if name != "squared":
        assert ((y * new >= 0) & (y * new <= 1)).all()
    reached = value(name, new, a, z, y, q)
    scale = 1 + np.abs(z) + q * np.abs(new - a) + q * np.abs(new)
    rounding = scale * (3e-7 if dtype == "float32" else 1e-14)
    ladder = np.concatenate([np.linspace(0, 1, 41), *(10.0 ** -np.arange(1, 12) * k for k in (1, 3))])
    for share in np.concatenate([ladder, 1 - ladder]):
        other = y * share if name != "squared" else new + 10 * (share - 0.5)
        assert (reached <= value(name, other, a, z, y, q) + rounding).all()


def test_the_logistic_step_solves_its_equation_to_rounding(x64):
    """g(s) = s + y z + q (sigmoid(s) - y a) = 0 at s = logit(y a'), where that can be read from a'."""
    a, z, y, q = cases(np.random.default_rng(1))
    b = y * np.asarray(LOSSES["logistic"].ascend(*map(jnp.asarray, (a, z, y, q))))
    low, high = np.minimum(-y * z - q, 0) - 1, np.maximum(-y * z + q, 0) + 1
    for _ in range(200):
        middle = (low + high) / 2
        rising = middle + y * z + q * (expit(middle) - y * a) < 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    np.testing.assert_allclose(b, expit(low), atol=1e-14)


def test_a_sample_of_zeros(x64):
    """It has q = z = 0: the step minimises the conjugate alone."""
    zero, one = jnp.zeros(()), jnp.ones(())
    for y in (one, -one):
        assert LOSSES["hinge"].ascend(zero, zero, y, zero) == y
        assert LOSSES["logistic"].ascend(zero, zero, y, zero) == 0.5 * y
        assert LOSSES["squared"].ascend(zero, zero, y, zero) == y
