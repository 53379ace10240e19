import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from idiolect.algorithms.parts.solvers import OPTIMIZERS, minimise, optimizer, over_batches, sgd
from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.core.errors import ConfigError
from tests.federations import classification, flat

CURVATURE = jnp.array([1.0, 4.0])
START = jnp.array([1.0, 1.0])


def gradient(x):
    return CURVATURE * x


@pytest.mark.parametrize("which", [*OPTIMIZERS, lambda rate: optax.sgd(rate, momentum=0.5)])
@pytest.mark.parametrize("tolerance", [None, 1e-30])
def test_minimise_is_the_optax_loop(which, tolerance):
    solver = optimizer(which, 0.05)
    x, state = START, solver.init(START)
    for _ in range(4):
        updates, state = solver.update(gradient(x), state, x)
        x = optax.apply_updates(x, updates)
    got = minimise(gradient, START, rate=0.05, steps=4, which=which, tolerance=tolerance)
    np.testing.assert_allclose(got, x, rtol=1e-6)


def test_nesterov_is_the_accelerated_method():
    """theta_{k+1} = y_k - r grad f(y_k), y_k = theta_k + m (theta_k - theta_{k-1}), in optax's equivalent form."""
    got = minimise(gradient, START, rate=0.05, steps=3, which="nesterov")
    velocity, x, c = np.zeros(2), np.ones(2), np.array([1.0, 4.0])
    for _ in range(3):
        slope = c * x
        velocity = slope + 0.9 * velocity
        x = x - 0.05 * (slope + 0.9 * velocity)
    np.testing.assert_allclose(got, x, rtol=1e-6)


def test_many_steps_compile_to_a_loop_and_agree():
    expected = (1 - 0.05 * np.array([1.0, 4.0])) ** 40
    np.testing.assert_allclose(minimise(gradient, START, rate=0.05, steps=40), expected, rtol=1e-5)
    program = jax.make_jaxpr(lambda x: minimise(gradient, x, rate=0.05, steps=400))(START)
    assert len(str(program)) < 5000


def test_sgd_keeps_the_optimisers_state_between_its_steps():
    problem = classification()
    client, key = problem.client(2), jax.random.key(0)
    solver = optax.sgd(0.1, momentum=0.9)

    @jax.jit
    def by_hand(w):
        state, batches = solver.init(w), client.batches(key, 3, 4, "fresh")
        for step in range(3):
            batch = jax.tree.map(lambda a, step=step: a[step], batches)
            updates, state = solver.update(client.grad(w, batch), state, w)
            w = optax.apply_updates(w, updates)
        return w

    got = jax.jit(lambda w: sgd(client, w, key, rate=0.1, steps=3, batch_size=4, which="momentum"))
    np.testing.assert_allclose(flat(got(problem.params)), flat(by_hand(problem.params)), atol=1e-6)


@pytest.mark.parametrize(
    ("batch_size", "epochs", "samples"), [(4, 0, [4, 4, 4]), (4, 1, [4, 4, 1]), (0, 0, [9, 9, 9]), (0, 3, [9, 9, 9])]
)
def test_over_batches_numbers_the_steps_and_hands_each_its_samples(batch_size, epochs, samples):
    """A client with 9 samples; None stands for all of them."""
    client = classification().client(0)

    def step(seen, batch, number):
        return seen.at[number].add(9 if batch is None else batch.weight.sum())

    def walk():
        return over_batches(
            client, jax.random.key(0), step, jnp.zeros(5), steps=3, batch_size=batch_size, epochs=epochs
        )

    np.testing.assert_array_equal(jax.jit(walk)(), [*samples, 0, 0])


def test_single_precision_stays_under_x64_with_a_double_precision_rate(x64):
    start = jnp.ones(2, jnp.float32)
    rate = jnp.asarray(0.05, jnp.float64)
    for tolerance in (None, 1e-3):
        assert minimise(lambda x: 2 * x, start, rate=rate, steps=2, tolerance=tolerance).dtype == jnp.float32


def test_an_unknown_optimiser_names_the_nearest():
    with pytest.raises(ConfigError, match="unknown optimiser 'adamm'; did you mean 'adam'"):
        optimizer("adamm", 0.1)


WITH_OPTIMIZER = [
    (name, key) for name in ALGORITHMS for key in hyperparameters(ALGORITHMS[name]) if "optimizer" in key
]


@pytest.mark.parametrize(("name", "key"), WITH_OPTIMIZER)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("adamm", "unknown optimiser 'adamm'; did you mean 'adam'"),
        (lambda: optax.sgd(0.1), "such as optax.adam; it fails for rate"),
        (lambda rate: rate, "such as optax.adam; it returns a"),
    ],
)
def test_an_optimiser_that_is_none_is_refused_by_its_method_and_setting(name, key, value, message):
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        ALGORITHMS[name](**{key: value})
    assert str(caught.value).startswith(f"{name}: {key}")
    assert len(WITH_OPTIMIZER) >= 15
