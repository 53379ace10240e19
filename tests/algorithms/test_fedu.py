"""FedU and dFedU against closed forms on quadratics, and against Algorithm 1 written out by hand."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect import graphs
from idiolect.algorithms.fedu import DFedU, FedU
from idiolect.algorithms.local import Local
from idiolect.algorithms.registry import build
from idiolect.core.errors import ConfigError
from idiolect.runtime.evaluate import Evaluator
from tests import contract
from tests.algorithms.fedu_quadratics import (
    MIXED,
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
)
from tests.federations import DIM, classification, flat, quadratics, rows, run
from tests.tiers import second


@pytest.mark.second
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


@pytest.mark.parametrize(
    ("graph", "options", "changes"),
    [
        second(PATH, {"cohort": 2}, {}),
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


@pytest.mark.second
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
