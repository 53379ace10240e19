"""FedU's mixing: what it keeps, where its limit lies, and what a cohort's part of it does."""

import warnings
from dataclasses import replace
from itertools import combinations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.base import Cohort
from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.fedu import FedU
from idiolect.graphs import GraphWarning
from tests.algorithms.fedu_quadratics import MIXED, PARTS, PATH, STAR, exact, runner, spread, without_loss
from tests.federations import DIM, flat, quadratics, rows, run


def test_the_mixing_step_is_a_step_along_the_gradient_of_half_of_eta_times_the_regulariser(x64):
    problem, eta, rate = without_loss(quadratics(dtype=np.float64)), 0.7, 0.05
    simulation = problem.simulation(exact(PATH, coupling=eta, rate=rate, local_steps=3))
    state = spread(simulation)
    before = rows(state.shared.params)
    a = jnp.asarray(PATH.adjacency().toarray())

    def regulariser(w):  # eq. (3): over ordered pairs
        return 0.5 * jnp.sum(a * jnp.sum((w[:, None] - w[None]) ** 2, axis=-1))

    slope = jax.grad(lambda w: 0.5 * eta * regulariser(w))(jnp.asarray(before))
    after = rows(simulation.advance(state, 1).shared.params)
    np.testing.assert_allclose(after - before, -rate * 3 * slope, atol=1e-12)


@pytest.mark.parametrize("graph", [PATH, MIXED], ids=["path", "hub"])
def test_the_box_draws_the_cohort_to_all_neighbours(graph, x64):
    """Algorithm 3: W_R = C + (I - mu S A)^R (W - C), then W <- (I - mu R eta S L) W_R; S keeps the cohort's rows."""
    problem, rate, steps, eta = quadratics(dtype=np.float64), 0.05, 3, 1.2
    method = exact(graph, rate=rate, local_steps=steps, coupling=eta, mixing="box")
    simulation = problem.simulation(method, cohort=2, rounds=4)
    state, told = spread(simulation), set()
    hub = graph.hub is not None
    for round in range(3):
        ids, _ = simulation.sampling.draw(jax.random.key(0), round, 2)
        before = rows(state.shared.params)
        chosen = np.zeros(4 + hub)
        chosen[[*ids, *([4] if hub else [])]] = 1
        ends = before.copy()
        for k in map(int, ids):
            shrink = np.linalg.matrix_power(np.eye(DIM) - rate * problem.a[k], steps)
            ends[k] = problem.c[k] + shrink @ (before[k] - problem.c[k])
        expected = ends - rate * steps * eta * np.diag(chosen) @ graph.laplacian().toarray() @ ends
        state = simulation.advance(state, 1)
        np.testing.assert_allclose(rows(state.shared.params), expected, atol=1e-12)
        told.add(tuple(map(int, ids)))
        absent = [k for k in range(4) if not chosen[k]]
        np.testing.assert_array_equal(rows(state.shared.params)[absent], before[absent])
    assert len(told) > 1


def test_with_all_clients_the_box_is_the_text_s_step():
    problem = quadratics(noise=1.0)
    a, b = (
        rows(run(problem.simulation(exact("star", mixing=mixing)), 3).shared.params)
        for mixing in ("simultaneous", "box")
    )
    np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.second
def test_a_cohort_mixes_with_its_share_of_the_full_step(x64):
    """On the complete graph, over all cohorts of S that a client is in: (S - 1) / (N - 1) of the full step."""
    problem, count = quadratics(dtype=np.float64), 3
    simulation = problem.simulation(exact("complete"))
    state, method = spread(simulation), simulation.algorithm

    def moved(ids):
        ids, sizes = jnp.asarray(ids), jnp.ones(len(ids))
        cohort = Cohort(ids, sizes, jnp.ones(len(ids), bool), 4, jnp.asarray(12.0), len(ids))
        after = method.aggregate(state.shared, cohort, jax.tree.map(lambda leaf: leaf[ids], state.shared.params))
        return rows(after.params) - rows(state.shared.params)

    full = moved(range(4))[0]
    some = np.mean([moved((0, *others))[0] for others in combinations((1, 2, 3), count - 1)], axis=0)
    assert np.linalg.norm(full) > 0.1
    np.testing.assert_allclose(some, (count - 1) / 3 * full, atol=1e-12)


def test_mixing_keeps_the_mean_of_each_connected_part():
    problem = quadratics()
    with pytest.warns(GraphWarning, match="2 components"):
        simulation = problem.simulation(exact(PARTS))
    go, state = runner(simulation), spread(simulation)
    a, b = (rows(go(state, 0.1, coupling, 1).shared.params) for coupling in (3.0, 0.0))
    assert np.abs(a - b).max() > 0.1
    for part in ([0, 2], [1, 3]):
        np.testing.assert_allclose(a[part].mean(axis=0), b[part].mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("graph", [PATH, STAR], ids=["path", "star"])
def test_mixing_alone_ends_in_consensus_below_the_limit_and_parts_beyond_it(graph, x64):
    problem, rate, steps = without_loss(quadratics(dtype=np.float64)), 0.05, 2
    method = exact(graph, rate=rate, local_steps=steps)
    simulation = problem.simulation(method)
    go, state = runner(simulation), spread(simulation)
    before, limit = rows(state.shared.params), graph.mixing_limit(rate, steps, 1.0).coupling
    with warnings.catch_warnings(action="error"):
        problem.simulation(replace(method, coupling=0.99 * limit))
    with pytest.warns(GraphWarning, match=rf"rho = 2.02 is not below 2.* stay below {limit:.4g}"):
        problem.simulation(replace(method, coupling=1.01 * limit))

    def after(coupling):
        w = rows(go(state, rate, coupling, 800).shared.params)
        np.testing.assert_allclose(w.mean(axis=0), before.mean(axis=0), rtol=0, atol=1e-11 * np.abs(w).max())
        return np.linalg.norm(w - w.mean(axis=0)) / np.linalg.norm(before - before.mean(axis=0))

    assert after(0.99 * limit) < 1e-5
    assert after(1.01 * limit) > 1e5


def test_on_the_complete_graph_a_step_of_one_is_fedavg():
    """a_kl = 1 / N and mu R eta = 1: every w_k becomes the mean; half of it goes half of the way."""
    problem = quadratics(noise=1.0)
    options = {"rate": 0.1, "local_steps": 2, "batch_size": 0}
    average = run(problem.simulation(FedAvg(weighting="uniform", **options)), 3)
    simulation = problem.simulation(FedU(graph="complete(weight=0.25)", **options))
    go, state = runner(simulation), simulation.init(0)
    whole = rows(go(state, 0.1, 1 / (0.1 * 2), 3).shared.params)
    np.testing.assert_allclose(whole, np.tile(flat(average.shared.params), (4, 1)), atol=1e-6)
    half, none = (rows(go(state, 0.1, part / (0.1 * 2), 1).shared.params) for part in (0.5, 0.0))
    np.testing.assert_allclose(half, 0.5 * none + 0.5 * none.mean(axis=0), atol=1e-6)
    assert np.abs(none - none.mean(axis=0)).max() > 0.1


def test_the_coupling_can_be_a_batch_axis():
    problem = quadratics()
    simulation = problem.simulation(exact())
    state = spread(simulation)
    etas = jnp.array([0.0, 0.5, 2.0])
    messages = jax.tree.map(lambda leaf: leaf + 1, state.shared.params)
    sizes = jnp.asarray(problem.sizes, jnp.float32)
    cohort = Cohort(jnp.arange(4), sizes, jnp.ones(4, bool), 4, jnp.sum(sizes), 4)

    def after(eta):
        return (
            eqx.tree_at(lambda m: m.coupling, simulation.algorithm, eta)
            .aggregate(state.shared, cohort, messages)
            .params
        )

    together = jax.jit(jax.vmap(after))(etas)
    for i, eta in enumerate(etas):
        w = rows(messages).astype(float)
        expected = w - 0.05 * float(eta) * PATH.laplacian().toarray() @ w
        np.testing.assert_allclose(rows(jax.tree.map(lambda leaf, i=i: leaf[i], together)), expected, atol=1e-6)


def test_the_published_step_warns_by_degree():
    """(1/2) mu R eta d >= 2, d the largest degree; the simultaneous step is beyond its limit long before."""
    problem = quadratics()
    options = {"rate": 0.1, "local_steps": 1, "graph": "complete"}
    with warnings.catch_warnings(action="error"):
        problem.simulation(FedU(coupling=13.3, mixing="published", **options))
    with pytest.warns(GraphWarning, match="d = 2.01 is not below 2"):
        problem.simulation(FedU(coupling=13.4, mixing="published", **options))
    with pytest.warns(GraphWarning, match=r"rho = 5.32 is not below 2.* stay below 5 \(rho = 4\)"):
        problem.simulation(FedU(coupling=13.3, **options))
    with pytest.warns(GraphWarning, match="rho = 2.4 is"):  # a grid: its worst entry
        problem.simulation(FedU(coupling=jnp.array([1.0, 6.0, 2.0]), **options))
