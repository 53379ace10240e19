"""FedSGD against gradient descent on all data, and against FedAvg with one local step."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.fedsgd import FedSGD
from idiolect.core.errors import ConfigError
from tests.contract import ignores_padding, is_the_same_however_executed, keeps_nothing
from tests.federations import classification, flat, quadratics, run
from tests.tiers import second


def pooled_slope(problem, weighting):
    """Gradient of sum_i p_i f_i on the concatenated samples, from its definition; l2 = 0.1."""
    x, y = jnp.asarray(problem.data.train.x), jnp.asarray(problem.data.train.y)
    sizes = problem.data.train.sizes
    share = np.full(len(sizes), 1 / sizes.sum()) if weighting == "size" else 1 / (len(sizes) * sizes)
    weight = jnp.asarray(np.repeat(share, sizes))

    def central(params):
        losses = jax.vmap(lambda a, b: -jax.nn.log_softmax(params(a))[b])(x, y)
        return jnp.sum(weight * losses) + 0.05 * sum(jnp.sum(p**2) for p in jax.tree.leaves(params))

    return jax.jit(jax.grad(central))


@pytest.mark.parametrize(
    ("weighting", "which", "solver"),
    [second("size", "sgd", optax.sgd(0.3)), ("uniform", "momentum", optax.sgd(0.3, momentum=0.9))],
)
def test_with_all_clients_it_is_gradient_descent_on_the_pooled_objective(weighting, which, solver):
    """The optimiser of the server is that of one machine with all the data, its state kept between the rounds."""
    problem = classification(l2=0.1)
    slope, w = pooled_slope(problem, weighting), problem.params
    memory = solver.init(w)
    for _ in range(3):
        updates, memory = solver.update(slope(w), memory, w)
        w = optax.apply_updates(w, updates)
    algorithm = FedSGD(rate=0.3, weighting=weighting, server_optimizer=which)
    np.testing.assert_allclose(flat(run(problem.simulation(algorithm), 3).shared.params), flat(w), atol=1e-6)


@pytest.mark.parametrize(("batch_size", "weighting"), [(0, "size"), second(2, "uniform")])
def test_it_is_fedavg_with_one_local_step(batch_size, weighting):
    """On the same samples: all of them, or the same mini-batches; in cohorts too."""
    problem = quadratics((3, 1, 6, 2, 4), noise=1.0)
    options = {"rate": 0.3, "batch_size": batch_size, "weighting": weighting}
    gradients = run(problem.simulation(FedSGD(**options), cohort=3), 4)
    models = run(problem.simulation(FedAvg(**options, local_steps=1), cohort=3), 4)
    np.testing.assert_allclose(flat(gradients.shared.params), flat(models.shared.params), atol=1e-6)
    assert np.abs(flat(gradients.shared.params) - flat(problem.params)).max() > 0.05


def test_mini_batch_sgd_is_gradient_descent_in_expectation():
    """The mean of the messages over many draws is the gradient, also of a client with less than a batch."""
    problem, draws = quadratics((3, 1, 6), noise=1.0), 4000
    algorithm, w = FedSGD(batch_size=2), np.linspace(-1, 2, 5)
    keys = jax.random.split(jax.random.key(1), draws)
    for index in range(3):
        client = problem.client(index)
        local = jax.jit(jax.vmap(lambda key, c=client: algorithm.local(problem.tree(w), None, c, key)[0]))
        sent = np.concatenate([np.asarray(leaf) for leaf in jax.tree.leaves(local(keys))], axis=1, dtype=float)
        error = sent.std(axis=0) / np.sqrt(draws)
        assert (error > 1e-3).all() == (index != 1)
        exact = problem.a[index] @ (w - problem.c[index])
        np.testing.assert_array_less(np.abs(sent.mean(axis=0) - exact), 5 * error + 1e-5)


@pytest.mark.second
def test_neither_execution_nor_padding_changes_anything_and_nothing_is_kept():
    algorithm = FedSGD(rate=0.3, batch_size=2)
    is_the_same_however_executed(algorithm)
    ignores_padding(algorithm)
    keeps_nothing(algorithm)


@pytest.mark.parametrize(("key", "value"), [("rate", 0.0), ("batch_size", -1), ("weighting", "sizes")])
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"fedsgd: {key} = "):
        FedSGD(**{key: value})


def test_an_unknown_server_optimiser_is_refused_at_once():
    with pytest.raises(ConfigError, match="did you mean 'adam'"):
        FedSGD(server_optimizer="adan")
