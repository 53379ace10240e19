import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.local import Local
from idiolect.algorithms.parts.solvers import OPTIMIZERS, minimise, optimizer, over_batches, sgd
from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from tests.federations import classification, flat, quadratics, run
from tests.tiers import second

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


KEY = jax.random.key(3)


@pytest.mark.parametrize("steps", [{"local_steps": 7}, {"local_steps": 1, "epochs": 7}])
def test_batch_size_0_is_gradient_descent_on_all_the_samples(steps):
    """w_K = c + (I - rate A)^K (w_0 - c) on a quadratic whose samples differ, so that mini-batches would not do."""
    problem = quadratics(noise=1.0)
    method = FedAvg(rate=0.2, batch_size=0, **steps)
    for index in range(problem.clients):
        start = np.linspace(-1, 2, 5)
        got = flat(method.train(problem.tree(start), problem.client(index), KEY))
        shrink = np.linalg.matrix_power(np.eye(5) - 0.2 * problem.a[index], 7)
        np.testing.assert_allclose(got, problem.c[index] + shrink @ (start - problem.c[index]), atol=1e-5)


def test_adjust_sees_the_gradient_and_the_current_point():
    """With adjust = gradient + mu (w - w_0), many steps end at the prox point."""
    problem = quadratics()
    start = problem.tree(np.ones(5))

    def towards_the_start(slope, w):
        return tree.add_scaled(slope, 2.0, tree.subtract(w, start))

    method = FedAvg(rate=0.1, batch_size=0, local_steps=300)
    got = flat(method.train(start, problem.client(0), KEY, adjust=towards_the_start))
    np.testing.assert_allclose(got, problem.prox(0, np.ones(5), 2.0), atol=1e-5)


@pytest.mark.parametrize("batch_size", [second(0), 4])
def test_a_part_trains_and_the_fixed_rest_does_not(batch_size):
    problem = classification()
    client, rate = problem.client(2), 0.3
    flags = eqx.tree_at(lambda m: m.second, jax.tree.map(lambda _: False, problem.params), True)
    head, body = eqx.partition(problem.params, flags)
    method = FedAvg(rate=rate, batch_size=batch_size, local_steps=3)
    got = jax.jit(lambda: method.train(head, client, KEY, fixed=body))()
    assert got.first is None
    whole = problem.params
    batches = client.batches(KEY, 3, 4, "fresh")
    for step in range(3):
        batch = jax.tree.map(lambda a, step=step: a[step], batches)
        slope = client.grad(whole, batch) if batch_size else client.full_value_and_grad(whole)[1]
        whole = eqx.tree_at(lambda m: m.second, whole, whole.second - rate * slope.second)
    np.testing.assert_allclose(got.second, whole.second, rtol=1e-5, atol=1e-6)


def test_steps_replace_the_rounds_own_number_of_steps():
    problem = quadratics()
    few, many = FedAvg(rate=0.1, batch_size=0, local_steps=2), FedAvg(rate=0.1, batch_size=0, epochs=9)
    start = problem.tree(np.ones(5))
    a, b = (flat(m.train(start, problem.client(1), KEY, steps=5)) for m in (few, many))
    np.testing.assert_array_equal(a, b)


@pytest.mark.second
def test_full_batch_rounds_do_not_depend_on_the_seed():
    problem = classification()
    simulation = problem.simulation(Local(rate=0.1, batch_size=0, local_steps=3))
    a, b = (rows_of(run(simulation, 2, seed)) for seed in (0, 1))
    np.testing.assert_array_equal(a, b)


def rows_of(state):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(state.private)])


def test_the_server_announces_sizes_and_cohort():
    """What a method may weigh its step with: N, S and the number of all samples, on every client the same."""
    problem = classification()
    simulation = problem.simulation(FedAvg(), cohort=2)
    for index in range(2):
        client = simulation.plan.client(simulation.arrays, jnp.asarray(index), jnp.asarray(0))
        assert (client.federation.clients, client.federation.cohort) == (5, 2)
        assert client.federation.capacity == 30
        assert float(client.federation.samples) == 61
