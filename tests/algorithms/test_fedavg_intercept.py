"""FedAvg with own intercepts against regressions with client dummies, in double precision."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from idiolect.algorithms.fedavg_intercept import FedAvgIntercept
from idiolect.core.errors import ConfigError
from idiolect.data import from_arrays
from idiolect.models import build as build_model
from idiolect.runtime.evaluate import Evaluator
from idiolect.study.spec.assemble import problem_of
from tests.federations import client_of, flat, quadratics, run
from tests.tiers import second

SIZES = (4, 40, 9, 25, 60)
L2, MU = 0.01, 3.0
EXACT = {"solver": "sgd", "local_steps": 1, "batch_size": 0}
"""Gradient descent on the whole objective: all clients, one step on all samples per round."""


def drawn(task, seed=0):
    """{client: (x, y)} with intercepts that differ, labels 0, 1, 2 or numbers."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(4, 3))

    def client(size):
        x = rng.normal(size=(size, 4)).astype("f4")
        outputs = x @ weights + rng.normal(size=3) * 2
        if task == "regression":
            return x, (outputs[:, 0] + 0.3 * rng.normal(size=size)).astype("f4")
        return x, np.array([rng.choice(3, p=row) for row in softmax(outputs, axis=1)])

    return {f"c{i}": client(size) for i, size in enumerate(SIZES)}


def problem(task, model=None, seed=0):
    data = from_arrays(drawn(task, seed), task=task, test=0.0, validation=0.0)
    zeros = {"name": "linear" if task == "regression" else "mlr", "init": "zeros"}
    return problem_of(data, model or {**zeros, "l2": L2})


def oracle(data, mu=MU, l2=L2):
    """The outputs of each client's rows under the regression with dummies, by L-BFGS in float64.

    It searches for the own intercepts times sqrt(1 + mu): beside a large penalty it would end early otherwise.
    """
    x, y = data.train.x.astype(float), data.train.y
    n, k, width = data.num_clients, (3 if data.task == "classification" else 1), x.shape[1]
    own = np.repeat(np.arange(n), data.train.sizes)
    cuts, unit = np.cumsum([width * k, k]), 1 / np.sqrt(1 + mu)

    def parts(theta):
        w, shared, each = np.split(theta, cuts)
        return w.reshape(width, k), shared, unit * each.reshape(n, k)

    def value(theta):
        w, shared, each = parts(theta)
        z = x @ w + shared + each[own]
        if k == 1:
            loss, slope = 0.5 * ((z[:, 0] - y) ** 2).sum(), z - y[:, None]
        else:
            loss, slope = -log_softmax(z, axis=1)[np.arange(len(y)), y].sum(), softmax(z, axis=1) - np.eye(k)[y]
        ridge = 0.5 * len(y) * l2 * ((w**2).sum() + (shared**2).sum()) + 0.5 * mu * (each**2).sum()
        of_w = x.T @ slope + len(y) * l2 * w
        of_each = np.stack([slope[own == i].sum(axis=0) for i in range(n)]) + mu * each
        of_shared = slope.sum(axis=0) + len(y) * l2 * shared
        return loss + ridge, np.concatenate([of_w.ravel(), of_shared, unit * of_each.ravel()])

    start = np.zeros(width * k + k + n * k)
    options = {"maxiter": 10_000, "ftol": 1e-16, "gtol": 1e-9}
    w, shared, each = parts(minimize(value, start, jac=True, method="L-BFGS-B", options=options).x)
    return x @ w + shared + each[own]


def outputs(simulation, state):
    """The outputs of each client's `personal` model for its training rows."""
    params = Evaluator(simulation).client_params(state, ("personal",))["personal"]
    own = np.repeat(np.arange(simulation.data.num_clients), simulation.data.train.sizes)
    each = jax.tree.map(lambda leaf: jnp.asarray(leaf)[own], params)
    found = jax.vmap(lambda p, x: simulation.objective.model(p)(x))(each, jnp.asarray(simulation.data.train.x))
    return np.asarray(found).reshape(len(own), -1)


@pytest.mark.parametrize("task", ["classification", second("regression")])
@pytest.mark.parametrize(("settings", "rounds"), [({}, 12), second({**EXACT, "rate": 0.4}, 6000)])
def test_it_converges_to_the_regression_with_client_dummies(task, settings, rounds):
    given = problem(task)
    simulation = given.simulation(FedAvgIntercept(intercept_penalty=MU, **settings))
    found = outputs(simulation, run(simulation, rounds))
    np.testing.assert_allclose(found, oracle(given.data), atol=1e-5)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_large_penalty_gives_the_pooled_regression(task):
    given = problem(task)
    simulation = given.simulation(FedAvgIntercept(intercept_penalty=1e7))
    np.testing.assert_allclose(outputs(simulation, run(simulation, 12)), oracle(given.data, mu=1e7), atol=5e-6)


def test_newton_survives_features_of_any_scale_and_copies_of_a_feature():
    """Units do not matter, and directions without curvature are left alone."""
    clients = {
        name: (np.concatenate([1000 * x, x[:, :1], x[:, :1]], axis=1), y)
        for name, (x, y) in drawn("classification").items()
    }
    data = from_arrays(clients, task="classification", test=0.0, validation=0.0)
    given = problem_of(data, {"name": "mlr", "init": "zeros", "l2": 1e-6})
    simulation = given.simulation(FedAvgIntercept())
    state = run(simulation, 1)
    losses = []
    for _ in range(25):
        state = simulation.advance(state, 1)
        losses.append(float(state.shared.loss))
    assert np.isfinite(losses).all()
    assert (np.diff(losses) <= 1e-6).all()
    np.testing.assert_allclose(
        softmax(outputs(simulation, state), axis=1), softmax(oracle(data, l2=1e-6), axis=1), atol=1e-3
    )


def test_one_newton_step_solves_least_squares():
    given = problem("regression")
    simulation = given.simulation(FedAvgIntercept(intercept_penalty=MU))
    # The first round evaluates the start, the second the step, which is then accepted.
    np.testing.assert_allclose(outputs(simulation, run(simulation, 2)), oracle(given.data), atol=1e-5)


@pytest.mark.second
def test_a_smaller_cohort_takes_shorter_steps_and_comes_near():
    given = problem("classification")
    simulation = given.simulation(FedAvgIntercept(intercept_penalty=MU), cohort=3, rounds=40)
    found = outputs(simulation, run(simulation, 40))
    assert np.abs(softmax(found, axis=1) - softmax(oracle(given.data), axis=1)).mean() < 0.05


def test_auto_is_newton_for_one_layer_and_sgd_else():
    for model, newton in (({"name": "mlr"}, True), ({"name": "mlp", "hidden": [4]}, False)):
        given = problem("classification", model)
        state = given.simulation(FedAvgIntercept()).init(0)
        assert hasattr(state.shared, "direction") is newton


def test_a_network_gets_own_intercepts_too():
    given = problem("classification", {"name": "mlp", "hidden": [4]})
    simulation = given.simulation(FedAvgIntercept(rate=0.1, local_steps=5))
    state = run(simulation, 30)
    assert np.abs(np.asarray(state.private)).max() > 0.1
    params = Evaluator(simulation).client_params(state, ("personal",))["personal"]
    body = np.asarray(params.layers[0].weight)
    np.testing.assert_array_equal(body, np.broadcast_to(body[:1], body.shape))
    shift = np.asarray(params.layers[1].bias) - np.asarray(state.shared.params.layers[1].bias)
    np.testing.assert_allclose(shift, state.private, atol=1e-6)


def test_what_is_sent_does_not_depend_on_the_private_intercept():
    """It is where Newton's solver of the intercept begins, and no more."""
    given = problem("classification")
    simulation = given.simulation(FedAvgIntercept())
    method, state = simulation.algorithm, simulation.init(0)
    client = client_of(given.data, given.objective, 1)
    view = method.view(state.shared, jnp.asarray(1))
    key = jax.random.key(0)
    one, _ = method.local(view, jnp.zeros(3), client, key)
    other, _ = method.local(view, jnp.ones(3), client, key)
    np.testing.assert_allclose(flat(one), flat(other), rtol=1e-4, atol=1e-4)


def test_a_model_without_a_bias_is_refused():
    with pytest.raises(ConfigError, match="last layer has no bias"):
        quadratics((3, 2)).simulation(FedAvgIntercept())


def test_newton_on_a_large_network_is_refused():
    given = problem("classification", {"name": "mlp", "hidden": [500]})
    with pytest.raises(ConfigError, match="at most 2,000 parameters"):
        given.simulation(FedAvgIntercept(solver="newton"))


def test_the_last_layer_is_found_by_its_bias():
    module = build_model("mlp", (4,), 3, "classification", jax.random.key(0))
    given = problem("classification", module)
    assert given.simulation(FedAvgIntercept()).init(0).private.shape == (5, 3)


@pytest.mark.parametrize(("solver", "numbers"), [("auto", 15**2), ("sgd", 15)])
def test_what_a_client_carries_follows_from_the_shapes_alone(solver, numbers):
    """A site checks a method before it has a model."""
    method = FedAvgIntercept(solver=solver)
    start = problem("classification").simulation(method).start
    shapes = eqx.tree_at(lambda one: one.params, start, eqx.filter_eval_shape(lambda: start.params))
    assert method.carried(start) == method.carried(shapes) == numbers
