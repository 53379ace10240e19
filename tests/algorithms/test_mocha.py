"""MOCHA against closed forms, independent solvers of the primal, and its own duality gap computed by numpy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import idiolect
from idiolect.algorithms.base import Cohort
from idiolect.algorithms.mocha import Change, Mocha
from idiolect.algorithms.registry import build
from idiolect.client.objective import objective_of
from idiolect.core.errors import ConfigError
from idiolect.data import from_arrays
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.simulate import Simulation
from tests.algorithms.mocha_tasks import (
    CLIENTS,
    FEATURES,
    SETTINGS,
    SIZES,
    Linear,
    diagnosed,
    simulated,
    tasks,
    variables,
    weights,
)
from tests.federations import federation, rows, run, split_of
from tests.tiers import second


@pytest.mark.parametrize(("task", "relation"), [("regression", "mean"), second("classification", "any")])
def test_the_squared_loss_ends_at_the_multi_task_ridge_solution(x64, task, relation):
    problem, _, simulation, precision = simulated("squared", task, relation)
    best = problem.ridge(precision)
    state = run(simulation, 250)
    np.testing.assert_allclose(weights(state.shared.params), best, atol=1e-8)
    found = diagnosed(simulation, state)
    assert found["primal objective"] == pytest.approx(problem.primal("squared", best, precision), rel=1e-12)
    assert abs(found["duality gap"]) < 1e-11 * found["primal objective"]
    models = Evaluator(simulation).client_params(state, ("personal",))["personal"]
    np.testing.assert_array_equal(rows(models), rows(state.shared.params))


def test_the_logistic_loss_ends_where_another_solver_of_the_primal_does(x64):
    problem, _, simulation, precision = simulated("logistic")
    state = run(simulation, 200)
    np.testing.assert_allclose(weights(state.shared.params), problem.smooth_optimum(precision), atol=2e-7)
    found = diagnosed(simulation, state)
    assert abs(found["duality gap"]) < 1e-10 * found["primal objective"]


def test_the_hinge_loss_ends_where_the_optimality_conditions_hold(x64):
    """y a in [0, 1]: 1 within the margin, 0 beyond it, anything only on it; and W the image of the duals."""
    problem, _, simulation, precision = simulated("hinge")
    state = run(simulation, 400)
    found = diagnosed(simulation, state)
    assert abs(found["duality gap"]) < 1e-10 * found["primal objective"]
    a, w = variables(state), weights(state.shared.params)
    image = np.stack([own.T @ x for own, x in zip(a, problem.x, strict=True)])
    np.testing.assert_allclose(np.tensordot(np.linalg.inv(precision), image, axes=1), w, atol=1e-10)
    pairs = zip(a, problem.x, problem.y, w, strict=True)
    both = [(y * own, y * (x @ mine.T)) for own, x, y, mine in pairs]
    share, margin = (np.concatenate([part.ravel() for part in parts]) for parts in zip(*both, strict=True))
    assert ((share >= 0) & (share <= 1)).all()
    beyond, within = margin > 1 + 1e-6, margin < 1 - 1e-6
    assert (share[beyond] < 1e-9).all()
    assert (share[within] > 1 - 1e-9).all()
    between = (share > 0.01) & (share < 0.99)
    assert beyond.sum() > 10
    assert within.sum() > 10
    assert between.sum() > 3


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_every_round_the_gap_is_the_true_one_of_its_start_and_the_dual_rises(x64, loss):
    problem, _, simulation, precision = simulated(loss)
    state = simulation.init(0)
    first = diagnosed(simulation, state)
    assert np.isnan(first["duality gap"])
    assert np.isnan(first["primal objective"])
    assert first["dual objective"] == 0
    gaps, duals = [], []
    for _ in range(12):
        primal = problem.primal(loss, weights(state.shared.params), precision)
        dual = problem.dual(loss, variables(state), precision)
        state = simulation.advance(state, 1)
        found = diagnosed(simulation, state)
        assert found["primal objective"] == pytest.approx(primal, rel=1e-12)
        assert found["dual objective"] == pytest.approx(dual, rel=1e-12, abs=1e-12)
        assert found["duality gap"] == pytest.approx(primal - dual, rel=1e-9)
        gaps.append(found["duality gap"])
        duals.append(dual)
    assert min(gaps) > 0
    assert gaps[-1] < 0.2 * gaps[0]
    assert (np.diff(duals) > 0).all()


@pytest.mark.second
def test_a_cohort_of_some_clients_ends_at_the_same_optimum(x64):
    """Clients that are not sampled have theta = 1; the gap is then unknown, the dual objective is known and rises."""
    problem, algorithm = tasks("regression"), Mocha(loss="squared", **SETTINGS)
    precision = problem.precision(algorithm)
    simulation = problem.simulation(algorithm, cohort=2, sampling="binomial", rounds=800)
    state = simulation.init(1)
    duals = []
    for _ in range(10):
        expected = problem.dual("squared", variables(state), precision)
        cohort = int(np.sum(simulation.sampling.draw(state.seed, state.round, CLIENTS)[1]))
        previous = float(state.shared.dual)
        state = simulation.advance(state, 1)
        found = diagnosed(simulation, state)
        if cohort == 0:  # the server's state stays as it is
            assert found["dual objective"] == previous
            continue
        assert np.isnan(found["duality gap"]) == np.isnan(found["primal objective"]) == (cohort < CLIENTS)
        assert found["dual objective"] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        duals.append(expected)
    assert (np.diff(duals) > 0).all()
    state = simulation.advance(state, 790)
    np.testing.assert_allclose(weights(state.shared.params), problem.ridge(precision), atol=1e-8)


def test_all_changes_may_be_added_where_clients_repeat_each_other(x64):
    """Four times the same samples and models almost tied: without sigma' = 4 each round would overshoot."""
    x, y = np.random.default_rng(0).normal(size=(9, FEATURES)), np.linspace(-1, 1, 9)
    params = Linear(jnp.zeros(FEATURES), jnp.zeros(()))
    algorithm = Mocha(loss="squared", coupling=100.0, shrinkage=0.1, passes=30)
    data = federation(split_of([(x, y)] * CLIENTS))
    simulation = Simulation(data, objective_of(params, "regression"), params, algorithm)
    state, duals = simulation.init(0), []
    for _ in range(8):
        state = simulation.advance(state, 1)
        duals.append(float(state.shared.dual))
    assert (np.diff(duals) > 0).all()
    assert duals[-1] > 0.99 * float(state.shared.primal)
    assert 3.9 < float(state.shared.relation.safety) < 4


def test_rough_local_solutions_end_at_the_same_optimum(x64):
    problem, algorithm = tasks("regression"), Mocha(loss="squared", theta=0.9, **SETTINGS)
    simulation = problem.simulation(algorithm)
    state = run(simulation, 300)
    np.testing.assert_allclose(weights(state.shared.params), problem.ridge(problem.precision(algorithm)), atol=1e-7)


def test_without_coupling_each_client_is_on_its_own(x64):
    problem = tasks("regression")
    simulation = problem.simulation(Mocha(loss="squared", coupling=0.0, shrinkage=0.4, passes=5))
    state = run(simulation, 300)
    for x, y, w in zip(problem.x, problem.y, weights(state.shared.params), strict=True):
        alone = np.linalg.solve(x.T @ x + 0.4 * np.eye(FEATURES + 1), x.T @ y)
        np.testing.assert_allclose(w, alone.T, atol=1e-9)
    assert float(state.shared.relation.safety) == pytest.approx(1.0)


@pytest.mark.second
def test_the_order_of_the_clients_does_not_matter(x64):
    order = [2, 0, 3, 1]
    algorithm = Mocha(loss="logistic", passes=1000, coupling=2.0)  # local optima, whatever the samples' order
    one = weights(run(tasks().simulation(algorithm), 2).shared.params)
    other = weights(run(tasks(order=order).simulation(algorithm), 2).shared.params)
    np.testing.assert_allclose(one[order], other, atol=1e-10)


def test_blocks_do_not_matter(x64):
    states = [run(simulated("hinge", block=block)[2], 4) for block in (None, 1)]
    for a, b in zip(*(jax.tree.leaves((state.shared, state.private)) for state in states), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)


def test_padding_does_not_reach_the_server(x64):
    """Rows of the cohort that are no client, whatever they hold."""
    _, _, simulation, _ = simulated("hinge")
    algorithm, shared = simulation.algorithm, simulation.init(0).shared
    ids, rng = jnp.asarray([2, 0, 3]), np.random.default_rng(0)
    image = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=(3, *leaf.shape[1:]))), shared.image)
    messages = Change(image, jnp.asarray([1.0, 2.0, 3.0]), jnp.asarray([-1.0, -2.0, -3.0]))
    spoilt = jax.tree.map(lambda leaf: leaf.at[2].set(jnp.nan), messages)
    first = jax.tree.map(lambda leaf: leaf[:2], messages)
    present, sizes, total = jnp.asarray([True, True, False]), jnp.ones(3), jnp.asarray(41.0)
    got = algorithm.aggregate(shared, Cohort(ids, sizes, present, CLIENTS, total, 2.0), spoilt)
    real = algorithm.aggregate(shared, Cohort(ids[:2], sizes[:2], present[:2], CLIENTS, total, 2.0), first)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(real), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(got.conjugate, [-2, 0, -1, 0])
    np.testing.assert_array_equal(np.asarray(got.image.weight)[[1, 3]], 0)


def test_no_dual_variable_is_sent_and_no_other_client_is_seen(x64):
    problem, _, simulation, _ = simulated("hinge")
    state = run(simulation, 2)
    algorithm, index = simulation.algorithm, jnp.asarray(2)
    view = algorithm.view(state.shared, index)
    client = simulation.plan.client(simulation.arrays, index, state.round)
    message, private = eqx.filter_jit(algorithm.local)(view, state.private[2], client, jax.random.key(0))
    assert jax.tree.structure(message.image) == jax.tree.structure(problem.params)
    for sent, own in zip(jax.tree.leaves(message.image), jax.tree.leaves(problem.params), strict=True):
        assert sent.shape == own.shape
    assert message.loss.shape == message.conjugate.shape == ()
    assert len(jax.tree.leaves(message)) == len(jax.tree.leaves(problem.params)) + 2
    assert private.shape == (max(SIZES), 3)
    sent = weights(jax.tree.map(lambda leaf: np.stack([leaf] * CLIENTS), message.image))[0]
    np.testing.assert_allclose(sent, np.asarray(private - state.private[2])[: SIZES[2]].T @ problem.x[2], atol=1e-11)
    shapes = [leaf.shape for leaf in jax.tree.leaves(view)]
    assert shapes == [leaf.shape for leaf in jax.tree.leaves(problem.params)] + [()]
    np.testing.assert_array_equal(rows(jax.tree.map(lambda a: a[None], view.params)), rows(state.shared.params)[2:3])
    assert float(view.curvature) == pytest.approx(
        float(state.shared.relation.safety * state.shared.relation.mixing[2, 2])
    )


@pytest.mark.second
def test_the_zoos_model_in_single_precision():
    """With more rows for dual variables than samples."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(5, 2))
    parts = {f"c{i}": (x := rng.normal(size=(40, 5)).astype("f4"), (x @ truth).argmax(1)) for i in range(3)}
    data, method = from_arrays(parts, task="classification"), Mocha(capacity=100)
    done = idiolect.run(data, "mlr", method, rounds=30, eval_every=30, splits=("test",))
    assert done.summary("personal").pooled > 0.9
    assert done.state.private.shape == (3, 100, 2)
    assert done.state.private.dtype == jnp.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coupling": -1.0}, "coupling = -1.0 must not be negative"),
        ({"coupling": 0.0, "relationship": "learned"}, "coupling = 0.0 must be greater than 0"),
        ({"shrinkage": 0.0}, "shrinkage = 0.0 must be greater than 0"),
        ({"theta": 1.5}, "theta = 1.5 must not be greater than 1"),
        ({"ridge": 0.0}, "ridge = 0.0 must be greater than 0"),
        ({"passes": 0}, "passes = 0 must be greater than 0"),
        ({"omega_every": 0}, "omega_every = 0 must be greater than 0"),
        ({"capacity": -1}, "capacity = -1 must not be negative"),
        ({"loss": "cross-entropy"}, "loss = 'cross-entropy' is not one of 'hinge', 'logistic', 'squared'"),
        ({"relationship": "graph"}, "relationship = 'graph' must be 'fixed' or 'learned'"),
    ],
)
def test_settings_out_of_range(options, message):
    with pytest.raises(ConfigError, match=message):
        build({"name": "mocha", **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacity": 24}, "capacity = 24, but a client has 25 training samples"),
        ({"relation": np.eye(3)}, "relation must be a symmetric matrix of 4 x 4 numbers, one row for each client"),
        ({"relation": 2.0}, "relation must be a symmetric matrix"),
        ({"relation": np.full((4, 4), "a")}, "relation must be a symmetric matrix"),
        ({"relation": np.full((4, 4), np.nan)}, "relation must be a symmetric matrix"),
        ({"relation": np.triu(np.ones((4, 4)))}, "relation must be a symmetric matrix"),
        ({"relation": -np.eye(4)}, "relation has the negative eigenvalue -1"),
        ({"relation": np.eye(4), "relationship": "learned"}, "must be invertible with trace 1"),
    ],
)
def test_a_federation_that_does_not_fit(options, message):
    problem = tasks()
    with pytest.raises(ConfigError, match=message):
        problem.simulation(Mocha(**options))


def test_models_and_losses_that_do_not_fit():
    with pytest.raises(ConfigError, match=r"loss = 'hinge' is for classification; use loss = 'squared'"):
        tasks("regression").simulation(Mocha())
    data = from_arrays({"a": (np.zeros((9, 4), "f4"), np.arange(9) % 2)}, task="classification")
    with pytest.raises(ConfigError, match="mocha trains linear models: mlr or linear"):
        idiolect.run(data, "mlp", Mocha())
