"""SCAFFOLD: the optimum that local steps alone miss, gradient descent, Algorithm 1 written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.registry import build
from idiolect.algorithms.scaffold import Controlled, Scaffold
from idiolect.core.errors import ConfigError
from idiolect.core.random import stream
from idiolect.models.registry import build as build_model
from tests import contract
from tests.federations import quadratics, rows, run
from tests.tiers import second

RATE, STEPS = 0.15, 6


def drift(problem, rate, steps):
    """I - (I - rate A_i)^steps: how far a client goes towards its own minimiser."""
    return [np.eye(5) - np.linalg.matrix_power(np.eye(5) - rate * a, steps) for a in problem.a]


@pytest.mark.second
@pytest.mark.parametrize("weighting", ["uniform", "size"])
def test_fedavg_stops_at_its_biased_fixed_point(x64, weighting):
    """w = sum_i p_i (c_i + (I - rate A_i)^K (w - c_i)), solved; far from the optimum that SCAFFOLD reaches."""
    problem = quadratics(dtype=np.float64, noise=1.0)
    share = problem.sizes if weighting == "size" else np.ones(problem.clients)
    pulls = [p * m for p, m in zip(share, drift(problem, RATE, STEPS), strict=True)]
    biased = np.linalg.solve(sum(pulls), sum(m @ c for m, c in zip(pulls, problem.c, strict=True)))
    method = FedAvg(rate=RATE, local_steps=STEPS, batch_size=0, weighting=weighting)
    state = run(problem.simulation(method), 150)
    np.testing.assert_allclose(contract.vector(state.shared.params), biased, atol=1e-10, rtol=0)
    assert np.linalg.norm(biased - problem.optimum(share)) > 0.1


@pytest.mark.parametrize(
    ("options", "cohort", "rounds"),
    [
        second({"option": "I"}, None, 200),
        second({"option": "II", "epochs": 4}, None, 200),
        ({"option": "I"}, 2, 800),
        second({"option": "II"}, 2, 800),
        second({"option": "II", "weighting": "size", "server_rate": 0.5}, 2, 1600),
    ],
)
def test_it_reaches_the_optimum_of_different_clients(x64, options, cohort, rounds):
    """The same steps as FedAvg's above, with full and partial participation."""
    problem = quadratics(dtype=np.float64, noise=1.0)
    method = Scaffold(**{"rate": RATE, "local_steps": STEPS, "batch_size": 0} | options)
    state = run(problem.simulation(method, cohort=cohort), rounds)
    optimum = problem.optimum(problem.sizes if "weighting" in options else None)
    np.testing.assert_allclose(contract.vector(state.shared.params), optimum, atol=1e-9, rtol=0)
    gradients = [a @ (optimum - c) for a, c in zip(problem.a, problem.c, strict=True)]
    np.testing.assert_allclose(rows(state.private), gradients, atol=1e-8, rtol=0)
    np.testing.assert_allclose(contract.vector(state.shared.control), 0, atol=1e-9)


@pytest.mark.second
@pytest.mark.parametrize("option", ["I", "II"])
def test_one_step_with_all_clients_is_gradient_descent(x64, option):
    """The corrections cancel in the mean: x <- x - eta_g eta_l grad f(x)."""
    problem = quadratics(dtype=np.float64, noise=1.0)
    method = Scaffold(rate=0.2, server_rate=1.5, local_steps=1, batch_size=0, option=option)
    x = contract.vector(problem.params)
    for _ in range(5):
        x = x - 1.5 * 0.2 * np.mean([a @ (x - c) for a, c in zip(problem.a, problem.c, strict=True)], axis=0)
    state = run(problem.simulation(method), 5)
    np.testing.assert_allclose(contract.vector(state.shared.params), x, atol=1e-12, rtol=0)


@pytest.mark.parametrize("weighting", ["uniform", second("size")])
def test_the_servers_variate_is_the_mean_of_the_clients(x64, weighting):
    """c = mean_i c_i after every round, weighted where the objective is, whoever came and however many."""
    problem = quadratics(dtype=np.float64, noise=1.0)
    method = Scaffold(rate=0.1, local_steps=3, batch_size=2, weighting=weighting)
    simulation = problem.simulation(method, cohort=2.5, sampling="binomial", rounds=6)
    state = simulation.init(0)
    weights = problem.sizes if weighting == "size" else None
    for _ in range(6):
        state = simulation.advance(state, 1)
        mean = np.average(rows(state.private), axis=0, weights=weights)
        np.testing.assert_allclose(contract.vector(state.shared.control), mean, atol=1e-12)
    assert np.abs(mean).max() > 1e-2


@pytest.mark.parametrize(
    "options",
    [
        {"option": "I", "local_steps": 3},
        {"option": "II", "local_steps": 3, "server_rate": 0.7},
        second({"option": "II", "epochs": 2}),
    ],
)
def test_two_rounds_are_algorithm_1_written_out(x64, options):
    """In numpy, with the mini-batches that the clients draw; with epochs K_i = 2 ceil(n_i / 2) differs."""
    problem = quadratics((5, 1, 7, 4), dtype=np.float64, noise=1.0)
    method = Scaffold(**{"rate": 0.1, "batch_size": 2} | options)
    simulation = problem.simulation(method, cohort=3)
    state, server_rate = simulation.init(0), options.get("server_rate", 1.0)
    x, c, own = contract.vector(problem.params), np.zeros(5), np.zeros((4, 5))
    for round in range(2):
        ids, _ = simulation.sampling.draw(state.seed, round, 3)
        changes, moves = [], []
        for i in np.asarray(ids):
            steps, order = 3, "fresh"
            if "epochs" in options:
                steps, order = 2 * -(-int(problem.sizes[i]) // 2), "epoch"
            key = stream(jax.random.key(0), "local", round, i)
            y = x
            for k in range(steps):
                batch = problem.client(int(i)).batch(key, k, 2, order)
                kept = np.asarray(batch.x)[np.asarray(batch.weight) > 0]
                y = y - 0.1 * (problem.a[i] @ (y - kept[:, :, 5].mean(axis=0)) - own[i] + c)
            new = (
                problem.a[i] @ (x - problem.c[i])
                if options["option"] == "I"
                else own[i] - c + (x - y) / (steps * 0.1)
            )
            changes.append(y - x)
            moves.append(new - own[i])
            own[i] = new
        x = x + server_rate * np.mean(changes, axis=0)
        c = c + np.sum(moves, axis=0) / 4
    state = simulation.advance(state, 2)
    np.testing.assert_allclose(contract.vector(state.shared.params), x, atol=1e-11, rtol=0)
    np.testing.assert_allclose(contract.vector(state.shared.control), c, atol=1e-11, rtol=0)
    np.testing.assert_allclose(rows(state.private), own, atol=1e-11, rtol=0)


@pytest.mark.parametrize("epochs", [second(0), 3])
def test_the_published_steps_move_the_first_array_and_count_one_pass(x64, epochs):
    """Two rounds in numpy: the first array has two of the five entries; K of line 12 is that of one pass."""
    problem = quadratics((5, 1, 7, 4), dtype=np.float64, noise=1.0)
    method = Scaffold(rate=0.1, batch_size=2, steps="published", epochs=epochs, local_steps=3)
    simulation = problem.simulation(method, cohort=3)
    state, moved = simulation.init(0), np.array([1.0, 1.0, 0.0, 0.0, 0.0])
    x, c, own = contract.vector(problem.params), np.zeros(5), np.zeros((4, 5))
    for round in range(2):
        ids, _ = simulation.sampling.draw(state.seed, round, 3)
        changes, moves = [], []
        for i in np.asarray(ids):
            per_pass = -(-int(problem.sizes[i]) // 2)
            key, y = stream(jax.random.key(0), "local", round, i), x
            for k in range(epochs * per_pass or 3):
                batch = problem.client(int(i)).batch(key, k, 2, "epoch" if epochs else "fresh")
                kept = np.asarray(batch.x)[np.asarray(batch.weight) > 0]
                y = y - 0.1 * moved * (problem.a[i] @ (y - kept[:, :, 5].mean(axis=0)) - own[i] + c)
            new = own[i] - c + (x - y) / ((per_pass if epochs else 3) * 0.1)
            changes.append(y - x)
            moves.append(new - own[i])
            own[i] = new
        x, c = x + np.mean(changes, axis=0), c + np.sum(moves, axis=0) / 4
    state = simulation.advance(state, 2)
    np.testing.assert_allclose(contract.vector(state.shared.params), x, atol=1e-11, rtol=0)
    np.testing.assert_allclose(contract.vector(state.shared.control), c, atol=1e-11, rtol=0)
    np.testing.assert_allclose(rows(state.private), own, atol=1e-11, rtol=0)
    assert np.abs(x - contract.vector(problem.params))[:2].min() > 1e-2
    np.testing.assert_array_equal(x[2:], contract.vector(problem.params)[2:])


@pytest.mark.parametrize("name", ["mlr", "mlp"])
def test_the_first_array_of_a_model_is_the_first_layers_weight(name):
    module = build_model({"name": name}, (6,), 3, "classification", jax.random.key(0))
    first = jax.tree.leaves(module)[0]
    assert first.ndim == 2
    assert 6 in first.shape


def test_the_published_steps_need_mini_batches():
    with pytest.raises(ConfigError, match='scaffold: steps = "published" takes mini-batches'):
        Scaffold(steps="published", batch_size=0)


def test_only_the_two_differences_are_sent(x64):
    """Nothing in the message is c_i or c_i+; shifting c and c_i together changes neither step nor message."""
    problem = quadratics(dtype=np.float64)
    method = Scaffold(rate=0.1, local_steps=3, batch_size=0)
    own, control = problem.tree(np.linspace(1, 2, 5)), problem.tree(np.linspace(-1, 0, 5))
    message, kept = contract.sent_by(method, problem.client(0), Controlled(problem.params, control), own)
    assert jax.tree.structure(message) == jax.tree.structure(Controlled(problem.params, problem.params))
    for secret in (own, kept):
        for leaf in jax.tree.leaves(secret):
            assert not any(leaf.shape == m.shape and jnp.any(jnp.isclose(leaf, m)) for m in jax.tree.leaves(message))
    shift = lambda tree: jax.tree.map(lambda leaf: leaf + 5.0, tree)  # noqa: E731
    same, shifted = contract.sent_by(
        method, problem.client(0), Controlled(problem.params, shift(control)), shift(own)
    )
    np.testing.assert_allclose(contract.vector(same.params), contract.vector(message.params), atol=1e-12)
    np.testing.assert_allclose(contract.vector(shifted), contract.vector(kept), atol=1e-12)
    np.testing.assert_allclose(contract.vector(same.control), contract.vector(kept) - contract.vector(own) - 5.0)


def test_the_contract_holds():
    method = Scaffold(rate=0.1, epochs=1, batch_size=2)
    contract.is_the_same_however_executed(method)
    contract.ignores_padding(method, rounds=2)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("option", "III"),
        ("steps", "first"),
        ("server_rate", 0.0),
        ("weighting", "sizes"),
        ("rate", -1.0),
        ("epochs", -1),
    ],
)
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"scaffold: {key} = "):
        build({"name": "scaffold", key: value})
