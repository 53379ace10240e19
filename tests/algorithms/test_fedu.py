"""FedU and dFedU against closed forms on quadratics, and against Algorithm 1 written out by hand."""

import warnings
from dataclasses import replace
from itertools import combinations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect import graphs
from idiolect.algorithms.base import Cohort
from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.fedu import DFedU, FedU
from idiolect.algorithms.local import Local
from idiolect.algorithms.registry import build
from idiolect.core.errors import ConfigError
from idiolect.graphs import GraphWarning
from idiolect.runtime.evaluate import Evaluator
from tests import contract
from tests.algorithms.fedu_quadratics import (
    MIXED,
    PARTS,
    PATH,
    STAR,
    algorithm_1,
    big,
    exact,
    fixed_point,
    losses,
    minimiser,
    runner,
    spread,
    without_loss,
)
from tests.federations import DIM, classification, flat, quadratics, rows, run


@pytest.mark.parametrize("graph", [PATH, STAR], ids=["path", "star"])
def test_it_converges_to_the_regularised_optimum_as_the_step_shrinks(graph, x64):
    """(A + eta L)^-1 A c: the algorithm descends sum F_k + (eta / 2) W'LW, not the eta W'LW of eq. (1)."""
    problem, eta, gaps = quadratics(dtype=np.float64), 1.5, []
    simulation = problem.simulation(exact(graph, local_steps=2))
    go = runner(simulation)
    for rate in (0.02, 0.01, 0.005):
        got = rows(go(simulation.init(0), rate, eta, round(20 / rate)).shared.params)
        np.testing.assert_allclose(got, fixed_point(problem, graph, rate, 2, eta), atol=1e-9)
        gaps.append(np.linalg.norm(got - minimiser(problem, graph, eta)))
    assert gaps[0] < 0.2
    np.testing.assert_allclose([gaps[0] / gaps[1], gaps[1] / gaps[2]], 2, atol=0.15)
    assert np.linalg.norm(got - minimiser(problem, graph, 2 * eta)) > 10 * gaps[-1]


def test_on_a_star_its_problem_is_pfedme_s_with_lambda_eta():
    """Section III-B: w_0 minimises the sum of the Moreau envelopes, w_k is the prox point there."""
    problem, eta = quadratics(), 1.5
    hessians = [problem.moreau_hessian(k, eta) for k in range(4)]
    w = np.linalg.solve(sum(hessians), sum(h @ c for h, c in zip(hessians, problem.c, strict=True)))
    points = minimiser(problem, STAR, eta)
    np.testing.assert_allclose(points[4], w, atol=1e-10)
    np.testing.assert_allclose(points[:4], [problem.prox(k, w, eta) for k in range(4)], atol=1e-10)


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


@pytest.mark.parametrize(
    ("graph", "options", "changes"),
    [
        (PATH, {"cohort": 2}, {}),
        (MIXED, {"cohort": 3}, {}),
        (PATH, {"cohort": 2.5, "sampling": "binomial"}, {}),
        (PATH, {"cohort": 3}, {"mixing": "published"}),
    ],
)
def test_rounds_are_algorithm_1_written_out(graph, options, changes):
    """Clients outside the cohort keep their models to the last bit and draw nobody; a hub is always there."""
    problem = quadratics((5, 1, 7, 4), noise=1.0)
    method = FedU(rate=0.05, local_steps=3, batch_size=2, batches="cyclic", coupling=1.2, graph=graph, **changes)
    simulation = problem.simulation(method, rounds=40, **options)
    state, padded = spread(simulation), 0
    capacity = simulation.sampling.capacity(state.seed, 40)
    for round in range(3):
        ids, present = simulation.sampling.draw(jax.random.key(0), round, capacity)
        padded += int((~present).sum())
        before = rows(state.shared.params)
        cohort = [int(k) for k in ids[present]]
        expected = algorithm_1(problem, method, graph, before.astype(float), cohort, round)
        state = simulation.advance(state, 1)
        np.testing.assert_allclose(rows(state.shared.params), expected, atol=2e-5)
        outside = [k for k in range(4) if k not in cohort]
        np.testing.assert_array_equal(rows(state.shared.params)[outside], before[outside])
    assert bool(padded) == ("sampling" in options)
    if graph is MIXED:
        models = Evaluator(simulation).client_params(state, ("personal",))["personal"]
        np.testing.assert_array_equal(rows(models), rows(state.shared.params)[:4])


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


def test_without_coupling_it_is_local_training():
    problem = classification()
    options = {"rate": 0.1, "local_steps": 3, "batch_size": 4}
    alone = problem.simulation(Local(**options), cohort=2, rounds=4)
    together = problem.simulation(FedU(coupling=0.0, **options), cohort=2, rounds=4)
    np.testing.assert_array_equal(rows(run(together, 4).shared.params), rows(run(alone, 4).private))


def test_dfedu_is_fedu_with_all_clients():
    problem = quadratics(noise=1.0)
    options = {"rate": 0.1, "local_steps": 2, "batch_size": 2, "coupling": 2.0, "graph": "ring(weight=0.7)"}
    a, b = (rows(run(problem.simulation(cls(**options)), 4).shared.params) for cls in (FedU, DFedU))
    np.testing.assert_allclose(a, b, atol=1e-6)
    assert np.abs(a - np.roll(a, 1, axis=0)).max() > 0.1


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


def test_with_epochs_a_client_s_loss_weighs_as_its_passes(x64):
    """R is the number of epochs; p_k mini-batches a pass make p_k F_k of F_k: (P A + eta L)^-1 P A c."""
    problem, eta = quadratics((3, 1, 6, 2), dtype=np.float64), 1.5
    a, c = losses(problem, PATH)
    a = np.kron(np.diag([2, 1, 3, 1]), np.eye(DIM)) @ a
    expected = np.linalg.solve(a + eta * big(PATH), a @ c).reshape(-1, DIM)
    simulation = problem.simulation(exact(epochs=2, batch_size=2, local_steps=50))
    go, rates = runner(simulation), (0.01, 0.005)
    gaps = [
        np.linalg.norm(rows(go(simulation.init(0), rate, eta, round(15 / rate)).shared.params) - expected)
        for rate in rates
    ]
    assert gaps[0] < 0.2
    np.testing.assert_allclose(gaps[0] / gaps[1], 2, atol=0.15)


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


def test_a_client_sees_its_own_model_and_nobody_else_s():
    problem = quadratics()
    simulation = problem.simulation(exact(STAR))
    state = spread(simulation)
    view = simulation.algorithm.view(state.shared, jnp.asarray(2))
    np.testing.assert_array_equal(flat(view), rows(state.shared.params)[2])
    message, private = simulation.algorithm.local(view, None, problem.client(2), jax.random.key(0))
    assert private is None
    start, c = rows(state.shared.params)[2], problem.c[2]
    np.testing.assert_allclose(flat(message), start - 0.05 * problem.a[2] @ (start - c), atol=1e-5)


def test_it_keeps_the_contract():
    method = exact("complete", rate=0.1, local_steps=2, batch_size=2)
    contract.is_the_same_however_executed(method)
    contract.ignores_padding(replace(method, graph="star"))
    contract.keeps_nothing(replace(method, graph="star"))


def test_dfedu_has_no_server():
    problem = quadratics()
    with pytest.raises(ConfigError, match="all 4 take part in every round, not 3; leave cohort out"):
        problem.simulation(DFedU(), cohort=3)
    with pytest.raises(ConfigError, match=r"cannot have a hub .* use fedu"):
        problem.simulation(DFedU(graph="star"))
    with pytest.raises(ConfigError, match="unknown key of method dfedu 'mixing'"):
        build({"name": "dfedu", "mixing": "published"})
    assert problem.simulation(DFedU(), cohort=4, sampling="binomial").sampling.size == 4


@pytest.mark.parametrize("cls", [FedU, DFedU])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coupling": -1.0}, "coupling = -1.0 must not be negative"),
        ({"rate": 0.0}, "rate = 0.0 must be greater than 0"),
        ({"local_steps": 0}, "local_steps = 0 must be"),
        ({"graph": "compleet"}, "unknown graph 'compleet'; did you mean 'complete'"),
        ({"graph": "random(densty=1)"}, "did you mean 'density'"),
    ],
)
def test_what_is_out_of_range_is_named(cls, changes, message):
    with pytest.raises(ConfigError, match=message):
        cls(**changes)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"graph": 3}, "fedu: graph = 3 must be a name"),
        ({"graph": "ring(weight=heavy)"}, "write a kind, or kind"),
        ({"mixing": "jacobi"}, "mixing = 'jacobi' must be 'simultaneous', 'box' or 'published'"),
    ],
)
def test_a_wrong_specification_is_refused_at_once(spec, message):
    with pytest.raises(ConfigError, match=message):
        build({"name": "fedu", **spec})
    built = build({"name": "fedu", "graph": "nearest(neighbours=3)", "coupling": 0.5})
    assert isinstance(built, FedU)
    assert built.graph == "nearest(neighbours=3)"


def test_a_graph_of_another_federation_is_refused():
    with pytest.raises(ConfigError, match="the graph has 7 clients, small has 4"):
        quadratics().simulation(FedU(graph=graphs.ring(7)))


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
