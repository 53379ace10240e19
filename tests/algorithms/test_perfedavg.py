"""Per-FedAvg's meta-gradient against automatic differentiation of f(w - alpha grad f(w))."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from idiolect.algorithms.perfedavg import PerFedAvg
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.core.random import stream
from idiolect.runtime.evaluate import Evaluator
from tests.federations import classification, flat, rows, run
from tests.tiers import second

ALPHA = 0.4


def meta(problem, client, batches, **options):
    algorithm = PerFedAvg(adapt_rate=ALPHA, **options)
    return flat(jax.jit(lambda w: algorithm.meta_gradient(client, w, *batches))(problem.params))


def draws(client):
    draw = jax.jit(lambda seed: client.draw(jax.random.key(seed), 8))
    return [draw(seed) for seed in range(3)]


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_exact_is_the_gradient_of_the_loss_after_adapting(precision):
    """On one mini-batch: grad of f(w - alpha grad f(w))."""
    with jax.enable_x64(precision == "float64"):
        problem = classification(l2=0.1, dtype=precision)
        client = problem.client(2)
        batch = draws(client)[0]

        def adapted_loss(w):
            return client.loss(tree.add_scaled(w, -ALPHA, client.grad(w, batch)), batch)

        expected = flat(jax.jit(jax.grad(adapted_loss))(problem.params))
        atol = 1e-6 if precision == "float32" else 1e-14
        np.testing.assert_allclose(meta(problem, client, 3 * [batch]), expected, atol=atol, rtol=0)
        first_order = meta(problem, client, 3 * [batch], variant="first-order")
        assert np.abs(first_order - expected).max() > 1e-2  # the Hessian matters here


def test_the_variants_differ_in_the_hessian_alone(x64):
    """(I - alpha H(w; D'')) v with the Hessian written out; first-order drops it; Hessian-free tends to it."""
    problem = classification(l2=0.1, dtype=np.float64)
    client = problem.client(2)
    first, second, third = batches = draws(client)
    vector, rebuild = ravel_pytree(problem.params)
    hessian = np.asarray(jax.jit(jax.hessian(lambda v: client.loss(rebuild(v), third)))(vector))
    grad = jax.jit(lambda w, batch: client.grad(w, batch))
    slope = flat(grad(tree.add_scaled(problem.params, -ALPHA, grad(problem.params, first)), second))
    exact = slope - ALPHA * hessian @ slope
    np.testing.assert_allclose(meta(problem, client, batches), exact, atol=1e-14)
    np.testing.assert_allclose(meta(problem, client, batches, variant="first-order"), slope, atol=1e-14)
    gaps = [
        np.abs(meta(problem, client, batches, variant="hessian-free", difference=delta) - exact).max()
        for delta in (1e-1, 1e-3)
    ]
    assert gaps[0] > 5e3 * gaps[1]  # central differences: the error falls as delta^2
    assert gaps[1] < 1e-7


@pytest.mark.parametrize("variant", ["exact", second("first-order"), "sequential"])
def test_a_round_takes_local_steps_on_consecutive_batches(variant):
    problem = classification()
    algorithm = PerFedAvg(
        rate=0.1, adapt_rate=0.2, local_steps=3, batch_size=4, variant=variant, batches="cyclic", adapt_steps=2
    )
    needed = 2 if variant in ("first-order", "sequential") else 3

    @jax.jit
    def by_hand(w):
        client = problem.client(2)  # 30 samples: 8 cyclic batches
        for step in range(3):
            first, second, third = (
                client.take(((needed * step + i) % 8) * 4 + jnp.arange(4)) for i in (0, 1, needed - 1)
            )
            if variant == "sequential":
                w = tree.add_scaled(w, -0.2, client.grad(w, first))
                w = tree.add_scaled(w, -0.1, client.grad(w, second))
            else:
                w = tree.add_scaled(w, -0.1, algorithm.meta_gradient(client, w, first, second, third))
        return w

    client = problem.client(2)
    local = jax.jit(lambda w: algorithm.local(w, None, client, jax.random.key(0))[0])
    np.testing.assert_allclose(flat(local(problem.params)), flat(by_hand(problem.params)), atol=1e-6)


@pytest.mark.parametrize("variant", ["sequential", second("exact")])
def test_epochs_give_each_client_as_many_iterations_as_full_mini_batches(variant):
    """Per pass floor(n_i / B), at least one; each takes the next two or three mini-batches of reshuffled passes."""
    problem = classification((9, 1, 30, 4, 17))
    algorithm = PerFedAvg(rate=0.1, adapt_rate=0.2, epochs=2, batch_size=4, variant=variant)
    needed, key = 2 if variant == "sequential" else 3, jax.random.key(3)
    local = jax.jit(lambda w, client: algorithm.local(w, None, client, key)[0])
    for index, iterations in ((0, 2 * 2), (1, 2 * 1), (4, 2 * 4)):
        client, w = problem.client(index), problem.params
        for step in range(iterations):
            draws = [client.batch(key, needed * step + i, 4, "epoch") for i in range(needed)]
            if variant == "sequential":
                w = tree.add_scaled(w, -0.2, client.grad(w, draws[0]))
                w = tree.add_scaled(w, -0.1, client.grad(w, draws[1]))
            else:
                w = tree.add_scaled(w, -0.1, algorithm.meta_gradient(client, w, *draws))
        np.testing.assert_allclose(flat(local(problem.params, client)), flat(w), atol=1e-6)
        assert np.abs(flat(w) - flat(problem.params)).max() > 1e-2


def test_the_server_averages_and_the_adapted_model_is_sgd_on_training_data():
    problem = classification()
    algorithm = PerFedAvg(local_steps=2, batch_size=4, adapt_steps=2, adapt_rate=0.2, weighting="size")
    simulation = problem.simulation(algorithm)

    @jax.jit
    def local(index):
        key = stream(jax.random.key(0), "local", 0, index)
        return algorithm.local(problem.params, None, problem.client(index), key)[0]

    locals = [flat(local(jnp.asarray(i))) for i in range(5)]
    sgd = [
        problem.sgd(problem.client(i), stream(jax.random.key(0), "local", 0, i), problem.params, 0.2, 2)
        for i in range(5)
    ]
    adapted = Evaluator(simulation).client_params(simulation.init(0), ("adapted",))
    np.testing.assert_allclose(rows(adapted["adapted"]), [flat(w) for w in sgd], atol=1e-6)
    mean = np.average(locals, axis=0, weights=problem.data.train.sizes)
    np.testing.assert_allclose(flat(run(simulation).shared), mean, atol=1e-6)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rate", -1.0),
        ("adapt_rate", float("nan")),
        ("difference", 0.0),
        ("local_steps", 0),
        ("adapt_steps", 0),
        ("epochs", -1),
    ],
)
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"perfedavg: {key} = "):
        PerFedAvg(**{key: value})


def test_an_unknown_variant_is_named():
    with pytest.raises(ConfigError, match="perfedavg: variant = 'second-order' is not one of 'exact'"):
        PerFedAvg(variant="second-order")
