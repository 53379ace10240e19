"""L2GD against its iteration in numpy, the exact gradient step, and the minimiser of the mixture objective."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.l2gd import L2GD
from idiolect.algorithms.local import Local
from idiolect.core.errors import ConfigError
from idiolect.runtime.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from idiolect.runtime.evaluate import Evaluator
from tests.contract import close
from tests.federations import bits, classification, flat, quadratics, rows, run, start_with

N = 4


def coins(algorithm, state, rounds):
    """The coins of the first rounds, as the method tosses them."""
    return np.asarray(jax.vmap(lambda t: algorithm.coin(state.shared, t))(jnp.arange(rounds)))


def minimiser(problem, coupling):
    """Solve A_i (x_i - c_i) + lambda (x_i - xbar) = 0 for all i: one linear system in all x_i."""
    centring = np.kron(np.eye(N) - np.full((N, N), 1 / N), np.eye(5))
    curvature = np.zeros((N * 5, N * 5))
    for i, a in enumerate(problem.a):
        curvature[5 * i : 5 * i + 5, 5 * i : 5 * i + 5] = a
    return np.linalg.solve(curvature + coupling * centring, curvature @ problem.c.ravel()).reshape(N, 5)


def test_rounds_are_the_iteration_written_out(x64):
    problem = quadratics(dtype=np.float64)
    alpha, coupling, p = 0.9, 0.7, 0.4
    algorithm = L2GD(rate=alpha, coupling=coupling, probability=p)
    simulation = problem.simulation(algorithm)
    state = simulation.init(1)
    tossed = coins(algorithm, state, 12)
    assert 2 < tossed.sum() < 10
    x = np.tile(flat(problem.params), (N, 1))
    for coin in tossed:
        if coin:
            x = (1 - alpha * coupling / (N * p)) * x + alpha * coupling / (N * p) * x.mean(axis=0)
        else:
            x = x - alpha / (N * (1 - p)) * np.einsum("ijk,ik->ij", problem.a, x - problem.c)
    state = simulation.advance(state, 12)
    models = Evaluator(simulation).client_params(state, ("personal", "global"))
    np.testing.assert_allclose(rows(models["personal"]), x, atol=1e-12)
    np.testing.assert_allclose(rows(models["global"]), np.tile(x.mean(axis=0), (N, 1)), atol=1e-12)


def test_the_expected_step_is_the_exact_gradient_step(x64):
    """p (aggregation) + (1 - p) (descent) = x - alpha grad F(x)."""
    problem, rng = quadratics(dtype=np.float64), np.random.default_rng(0)
    alpha, coupling, p = 0.5, 0.7, 0.3
    algorithm = L2GD(rate=alpha, coupling=coupling, probability=p)
    state = problem.simulation(algorithm).init(0)
    tossed = coins(algorithm, state, 50)
    rounds = {coin: int(np.flatnonzero(tossed == coin)[0]) for coin in (False, True)}
    x = rng.normal(size=(N, 5))
    centre = type(state.shared)(problem.tree(x.mean(axis=0)), state.shared.coins)

    @jax.jit
    def step(own, client, round):
        client = type(client)(**vars(client) | {"round": round})
        sent, kept = algorithm.local(centre, own, client, jax.random.key(0))
        return sent, kept

    for i in range(N):
        ends = {}
        for coin, round in rounds.items():
            sent, kept = step(problem.tree(x[i]), problem.client(i), jnp.asarray(round, jnp.int32))
            np.testing.assert_array_equal(flat(sent), flat(kept))
            ends[coin] = flat(kept)
        gradient = (problem.a[i] @ (x[i] - problem.c[i]) + coupling * (x[i] - x.mean(axis=0))) / N
        expected = p * ends[True] + (1 - p) * ends[False]
        np.testing.assert_allclose(expected, x[i] - alpha * gradient, atol=1e-12)


def test_with_small_steps_it_ends_in_the_mean_at_the_minimiser_of_the_mixture(x64):
    problem, coupling = quadratics(dtype=np.float64), 1.0
    simulation = problem.simulation(L2GD(rate=0.05, coupling=coupling, probability=0.4))
    state, seen = run(simulation, 1000), []
    for _ in range(400):
        state = simulation.advance(state, 20)
        seen.append(rows(state.private))
    best = minimiser(problem, coupling)
    np.testing.assert_allclose(np.mean(seen, axis=0), best, atol=0.01)
    assert np.abs(best - problem.c).max() > 0.3
    assert np.abs(best - best.mean(axis=0)).max() > 0.3


def test_without_coupling_it_is_local_gradient_descent():
    """lambda = 0 and p so small that no aggregation is drawn: Local with the rate alpha / (n (1 - p))."""
    problem, p = quadratics(), 1e-6
    state = run(problem.simulation(L2GD(rate=0.8, coupling=0.0, probability=p)), 20)
    local = Local(rate=0.8 / (N * (1 - p)), local_steps=1, batch_size=0)
    np.testing.assert_allclose(rows(state.private), rows(run(problem.simulation(local), 20).private), atol=1e-6)


def test_the_coin_is_common_fair_and_a_function_of_seed_and_round():
    problem, algorithm = quadratics(), L2GD(probability=0.3)
    simulation = problem.simulation(algorithm)
    first, other = (coins(algorithm, simulation.init(seed), 4000) for seed in (0, 1))
    assert abs(first.mean() - 0.3) < 0.03
    assert (first != other).any()
    # The rounds before do not matter: the bits from which the coins derive stay as they are.
    np.testing.assert_array_equal(coins(algorithm, run(simulation, 7), 50), first[:50])


def test_a_mini_batch_replaces_the_exact_gradient():
    problem, key = classification(), jax.random.key(5)
    algorithm = L2GD(rate=0.6, probability=1e-6, batch_size=4)
    client, w = problem.client(2), problem.params
    view = algorithm.init(start_with(w), jax.random.key(0))
    moved = jax.jit(lambda: algorithm.local(view, w, client, key)[0])()
    by_hand = problem.sgd(client, key, w, 0.6 / 5, 1)
    np.testing.assert_allclose(flat(moved), flat(by_hand), atol=1e-6)


@pytest.mark.parametrize(("cohort", "sampling"), [(2, "fixed"), (2.5, "binomial")])
def test_anything_but_full_participation_is_refused(cohort, sampling):
    with pytest.raises(ConfigError, match=f"l2gd needs everyone: all 4 take part in every round, not {cohort};"):
        quadratics().simulation(L2GD(), cohort=cohort, sampling=sampling, rounds=4)


@pytest.mark.second
def test_a_binomial_cohort_of_all_clients_is_all_clients():
    problem, algorithm = quadratics(), L2GD(rate=0.5)
    binomial = run(problem.simulation(algorithm, cohort=N, sampling="binomial", rounds=5), 5)
    fixed = run(problem.simulation(algorithm), 5)
    close((binomial.shared, binomial.private), (fixed.shared, fixed.private))


@pytest.mark.second
def test_the_block_size_changes_nothing():
    problem, algorithm = quadratics(noise=1.0), L2GD(rate=0.6, probability=0.5, batch_size=2)
    whole, *blocks = (run(problem.simulation(algorithm, block=block), 6) for block in (4, 1, 3))
    for state in blocks:
        close(state, whole)


def test_a_checkpoint_keeps_the_coins(tmp_path):
    simulation = quadratics().simulation(L2GD(probability=0.5))
    state = run(simulation, 3)
    before = bits(state)
    save_checkpoint(tmp_path / "run", Checkpoint(state, 0.0, 0.0), "hash")
    found = load_checkpoint(tmp_path / "run", simulation.init(9), "hash")
    assert bits(found.state) == before
    assert bits(simulation.advance(found.state, 4)) == bits(run(simulation, 7))


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("probability", 0.0, "must be greater than 0"),
        ("probability", 1.0, "must be less than 1"),
        ("coupling", -1.0, "must not be negative"),
        ("rate", 0.0, "must be greater than 0"),
        ("batch_size", -1, "must not be negative"),
    ],
)
def test_what_is_out_of_range_is_named(key, value, why):
    with pytest.raises(ConfigError, match=f"l2gd: {key} = .* {why}"):
        L2GD(**{key: value})
