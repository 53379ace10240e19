"""FedDANE: DANE's update in closed form, its fixed points, and the two phases of an update."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.feddane import Dane, FedDANE
from idiolect.algorithms.registry import build
from idiolect.core.errors import ConfigError
from tests import contract
from tests.federations import quadratics, quadratics_of, run, start_with
from tests.tiers import second


def exact(problem, mu, **changes):
    """FedDANE with local problems solved to the last digit."""
    options = {"prox_weight": mu, "rate": 1 / (problem.smooth + mu), "local_steps": 150, "batch_size": 0}
    return FedDANE(**options | changes)


def dane(problem, w, mu, share, helpers=None, solvers=None):
    """w - mean_{i in S'} (A_i + mu I)^-1 g, g = mean_{i in S} A_i (w - c_i): the exact solutions, averaged."""
    helpers, solvers = (range(problem.clients) if ids is None else list(ids) for ids in (helpers, solvers))
    g = np.average([problem.a[i] @ (w - problem.c[i]) for i in helpers], axis=0, weights=share[list(helpers)])
    moves = [np.linalg.solve(problem.a[i] + mu * np.eye(5), g) for i in solvers]
    return w - np.average(moves, axis=0, weights=share[list(solvers)])


@pytest.mark.parametrize("weighting", ["size", "uniform"])
@pytest.mark.parametrize("mu", [0.3, second(2.0)])
def test_an_exact_update_is_danes(x64, mu, weighting):
    problem = quadratics(dtype=np.float64, noise=1.0)
    share = problem.sizes if weighting == "size" else np.ones(problem.clients)
    simulation = problem.simulation(exact(problem, mu, weighting=weighting))
    state, w = simulation.init(0), contract.vector(problem.params)
    for _ in range(2):
        state, w = simulation.advance(state, 2), dane(problem, w, mu, share)
        np.testing.assert_allclose(contract.vector(state.shared.params), w, atol=1e-9, rtol=0)


def test_each_phase_has_its_own_cohort(x64):
    """Two of four clients a round: gradients from the first cohort, solutions from the second."""
    problem = quadratics(dtype=np.float64, noise=1.0)
    simulation = problem.simulation(exact(problem, 1.0), cohort=2)
    seed = next(s for s in range(9) if drawn(simulation, s, 0) != drawn(simulation, s, 1))
    state, w = simulation.init(seed), contract.vector(problem.params)
    expected = dane(problem, w, 1.0, problem.sizes, drawn(simulation, seed, 0), drawn(simulation, seed, 1))
    state = simulation.advance(state, 2)
    np.testing.assert_allclose(contract.vector(state.shared.params), expected, atol=1e-9, rtol=0)


def drawn(simulation, seed, round):
    ids, _ = simulation.sampling.draw(jax.random.key(seed), round, 2)
    return set(np.asarray(ids).tolist())


def test_every_odd_round_gathers_gradients_and_leaves_the_model(x64):
    problem = quadratics(dtype=np.float64, noise=1.0)
    simulation = problem.simulation(FedDANE(rate=0.1, local_steps=2, batch_size=2))
    state, before = simulation.init(0), contract.vector(problem.params)
    for round in range(1, 5):
        state = simulation.advance(state, 1)
        after = contract.vector(state.shared.params)
        if round % 2:
            np.testing.assert_array_equal(after, before)
            slopes = [a @ (after - c) for a, c in zip(problem.a, problem.c, strict=True)]
            mean = np.average(slopes, axis=0, weights=problem.sizes)
            np.testing.assert_allclose(contract.vector(state.shared.gradient), mean, atol=1e-12)
        else:
            assert np.abs(after - before).max() > 1e-3
        before = after


def test_inexact_solutions_are_sgd_on_the_corrected_problem(x64):
    """Two local steps by hand: grad f_i(w) + g - grad f_i(w_t) + mu (w - w_t)."""
    problem, mu = quadratics(dtype=np.float64), 0.7
    g, start = np.linspace(-1, 1, 5), contract.vector(problem.params)
    slope = lambda w: problem.a[1] @ (w - problem.c[1])  # noqa: E731
    once = start - 0.1 * g
    twice = once - 0.1 * (slope(once) + g - slope(start) + mu * (once - start))
    method = FedDANE(prox_weight=mu, rate=0.1, local_steps=2, batch_size=4)
    shared = Dane(problem.params, problem.tree(g), jnp.asarray(1))
    message, _ = contract.sent_by(method, problem.client(1), shared)
    np.testing.assert_allclose(contract.vector(message), twice, atol=1e-12, rtol=0)


def test_a_large_prox_weight_keeps_the_model(x64):
    """||w_t - w_{t-1}|| <= ||g_t|| / mu, tight as mu grows."""
    problem = quadratics(dtype=np.float64)
    start = contract.vector(problem.params)
    g = np.average(
        [a @ (start - c) for a, c in zip(problem.a, problem.c, strict=True)], axis=0, weights=problem.sizes
    )
    for mu in (1e2, 1e6):
        state = run(problem.simulation(exact(problem, mu, local_steps=5)), 2)
        moved, bound = np.linalg.norm(contract.vector(state.shared.params) - start), np.linalg.norm(g) / mu
        assert (1 - problem.smooth / mu) * bound <= moved <= bound


def test_different_clients_end_at_the_optimum_with_everyone(x64):
    """A fixed point is where g = 0, however few the local steps are: no client drift."""
    problem = quadratics(dtype=np.float64, noise=1.0)
    method = FedDANE(prox_weight=1.0, rate=0.2, local_steps=4, batch_size=0)
    state = run(problem.simulation(method), 300)
    np.testing.assert_allclose(
        contract.vector(state.shared.params), problem.optimum(problem.sizes), atol=1e-9, rtol=0
    )


def test_identical_clients_end_at_their_minimiser_whoever_comes(x64):
    one = quadratics(dtype=np.float64)
    start = contract.vector(one.params)
    problem = quadratics_of(np.repeat(one.a[:1], 4, 0), [np.tile(one.c[0], (2, 1))] * 4, start, np.float64)
    state = run(problem.simulation(exact(problem, 0.5), cohort=1), 80)
    np.testing.assert_allclose(contract.vector(state.shared.params), one.c[0], atol=1e-9, rtol=0)


def test_only_the_phases_work_is_done():
    """The phase is no client's own, so batching the clients keeps a branch where it would otherwise select."""
    problem, method = quadratics(), FedDANE(local_steps=2, batch_size=2)
    shared = method.init(start_with(problem.params), contract.KEY)

    def cohort(shared):
        return jax.vmap(lambda i: method.local(method.view(shared, i), None, problem.client(i), contract.KEY))(
            jnp.arange(4)
        )

    names = [equation.primitive.name for equation in jax.make_jaxpr(cohort)(shared).eqns]
    assert "cond" in names


@pytest.mark.second
def test_the_contract_holds():
    method = FedDANE(rate=0.1, local_steps=2, batch_size=2)
    contract.is_the_same_however_executed(method)
    contract.ignores_padding(method, rounds=2)
    contract.keeps_nothing(method)


def test_the_message_has_the_models_shape_in_both_phases():
    problem, method = quadratics(), FedDANE(local_steps=1)
    for phase in (0, 1):
        shared = Dane(problem.params, problem.params, jnp.asarray(phase))
        message, _ = contract.sent_by(method, problem.client(0), shared)
        assert jax.tree.structure(message) == jax.tree.structure(problem.params)


@pytest.mark.parametrize(
    ("key", "value"), [("prox_weight", -0.1), ("weighting", "none"), ("rate", 0.0), ("local_steps", 0)]
)
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"feddane: {key} = "):
        build({"name": "feddane", key: value})
