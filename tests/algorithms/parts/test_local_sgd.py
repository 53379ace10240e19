"""Local SGD, the piece that most methods share, against loops written by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect import FedAvg, Local
from idiolect.core import tree
from tests.federations import classification, flat, quadratics, run

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


@pytest.mark.parametrize("batch_size", [0, 4])
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
