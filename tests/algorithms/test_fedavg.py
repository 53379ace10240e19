"""FedAvg against centralised training and a hand-written loop."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from idiolect.algorithms.base import Cohort
from idiolect.algorithms.fedavg import FedAvg, FedAvgFineTuned
from idiolect.algorithms.parts.averaging import Server
from idiolect.algorithms.registry import build
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.core.random import stream
from idiolect.runtime.evaluate import Evaluator
from tests.federations import bits, classification, flat, rows, run, start_with
from tests.tiers import second


def full_batch(**changes):
    return FedAvg(**{"rate": 0.3, "local_steps": 1, "batch_size": 30} | changes)


@pytest.mark.parametrize("weighting", ["size", second("uniform")])
def test_one_full_batch_step_is_one_centralised_gradient_step(weighting):
    """With size weights: on the mean loss of the pooled data; with equal weights: on the mean of the f_i."""
    problem = classification(l2=0.1)
    x, y = jnp.asarray(problem.data.train.x), jnp.asarray(problem.data.train.y)
    sizes = problem.data.train.sizes
    share = 1 / sizes.sum() if weighting == "size" else 1 / (len(sizes) * sizes)
    weight = jnp.asarray(np.broadcast_to(np.repeat(share, sizes) if np.ndim(share) else share, len(y)))

    def central(params):
        losses = jax.vmap(lambda a, b: -jax.nn.log_softmax(params(a))[b])(x, y)
        return jnp.sum(weight * losses) + 0.05 * sum(jnp.sum(p**2) for p in jax.tree.leaves(params))

    expected = flat(problem.params) - 0.3 * flat(jax.jit(jax.grad(central))(problem.params))
    state = run(problem.simulation(full_batch(weighting=weighting)))
    np.testing.assert_allclose(flat(state.shared.params), expected, atol=1e-6)


def test_epochs_are_reshuffled_passes():
    problem = classification((9, 1, 4))
    algorithm = FedAvg(rate=0.2, epochs=2, batch_size=4)
    trained = []
    for index, size in enumerate((9, 1, 4)):
        client, w, passes = problem.client(index), problem.params, -(-size // 4)
        key = stream(jax.random.key(0), "local", 0, index)
        seen = []
        step = jax.jit(lambda w, batch, c=client: tree.add_scaled(w, -0.2, c.grad(w, batch)))
        for number in range(2 * passes):
            batch = client.batch(key, number, 4, "epoch")
            seen.append(np.asarray(batch.x)[np.asarray(batch.weight) > 0])
            w = step(w, batch)
        x, _ = problem.data.train.client(index)
        np.testing.assert_array_equal(np.sort(np.concatenate(seen), axis=0), np.sort(np.repeat(x, 2, 0), axis=0))
        trained.append(flat(w))
    mean = np.average(trained, axis=0, weights=(9, 1, 4))
    np.testing.assert_allclose(flat(run(problem.simulation(algorithm)).shared.params), mean, atol=1e-6)


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_the_server_optimiser_sgd_steps_towards_the_mean(rate):
    """Rate 1 is averaging."""
    served = FedAvg(server_optimizer="sgd", server_rate=rate)
    plain, w = FedAvg(), jnp.array([1.0, -2.0])
    cohort = Cohort(jnp.arange(2), jnp.array([1.0, 3.0]), jnp.ones(2, bool), 2, jnp.asarray(4.0), 2)
    messages, key = jnp.array([[0.5, 0.5], [1.0, 4.0]]), jax.random.key(0)
    mean = plain.aggregate(plain.init(start_with(w), key), cohort, messages).params
    np.testing.assert_allclose(mean, [0.875, 3.125])
    moved = served.aggregate(served.init(start_with(w), key), cohort, messages).params
    np.testing.assert_allclose(moved, (1 - rate) * w + rate * mean, rtol=1e-6)


def test_the_server_optimiser_keeps_its_state_between_rounds():
    """Adam on the pseudo-gradient w - mean, written with optax alone."""
    algorithm = FedAvg(server_optimizer="adam", server_rate=0.1)
    w = jnp.array([1.0, -2.0])
    cohort = Cohort(jnp.arange(2), jnp.array([1.0, 3.0]), jnp.ones(2, bool), 2, jnp.asarray(4.0), 2)
    shared = algorithm.init(start_with(w), jax.random.key(0))
    adam = optax.adam(0.1)
    by_hand, memory = w, adam.init(w)
    for round in range(3):
        messages = jnp.array([[0.5, 0.5], [1.0, float(round)]])
        shared = algorithm.aggregate(shared, cohort, messages)
        mean = (messages[0] + 3 * messages[1]) / 4
        updates, memory = adam.update(by_hand - mean, memory, by_hand)
        by_hand = by_hand + updates
    assert isinstance(shared, Server)
    np.testing.assert_allclose(shared.params, by_hand, rtol=1e-6)


def test_fine_tuning_changes_nothing_but_the_adapted_model():
    problem = classification()
    options = {"rate": 0.1, "local_steps": 2, "batch_size": 4}
    tuned = problem.simulation(FedAvgFineTuned(**options, finetune_steps=3, finetune_rate=0.2), cohort=2)
    state = run(tuned, 3)
    assert bits(state) == bits(run(problem.simulation(FedAvg(**options), cohort=2), 3))
    models = Evaluator(tuned).client_params(state, ("adapted", "global"))
    np.testing.assert_array_equal(rows(models["global"]), np.tile(flat(state.shared.params), (5, 1)))
    key = stream(jax.random.key(0), "local", 3, 2)
    by_hand = problem.sgd(problem.client(2), key, state.shared.params, 0.2, 3)
    np.testing.assert_allclose(rows(models["adapted"])[2], flat(by_hand), atol=1e-6)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rate", -0.1),
        ("rate", float("nan")),
        ("server_rate", 0.0),
        ("local_steps", 0),
        ("batch_size", -1),
        ("epochs", -1),
        ("batches", "shuffled"),
        ("weighting", "none"),
    ],
)
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"fedavg: {key} = "):
        FedAvg(**{key: value})


def test_fine_tuning_checks_its_own_and_its_parents_hyper_parameters():
    with pytest.raises(ConfigError, match="fedavg-ft: finetune_steps = 0"):
        FedAvgFineTuned(finetune_steps=0)
    with pytest.raises(ConfigError, match="fedavg-ft: finetune_rate = nan"):
        FedAvgFineTuned(finetune_rate=float("nan"))
    with pytest.raises(ConfigError, match="fedavg-ft: rate = -1"):
        FedAvgFineTuned(rate=-1.0)


def test_an_unknown_server_optimiser_is_refused_at_once():
    with pytest.raises(ConfigError, match="did you mean 'adam'"):
        FedAvg(server_optimizer="adan")


@pytest.mark.parametrize("value", [1.5, -1])
def test_epochs_must_be_a_whole_number(value: float) -> None:
    with pytest.raises(ConfigError, match="fedavg: epochs"):
        build({"name": "fedavg", "epochs": value})
