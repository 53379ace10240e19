"""MOCHA's relationship matrix, learned in alternation: its closed form, and relations that are in the data."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import sqrtm

from idiolect.algorithms.mocha import Mocha
from idiolect.client.objective import objective_of
from idiolect.runtime.simulate import Simulation
from tests.algorithms.mocha_tasks import CLIENTS, FEATURES, Linear, diagnosed, tasks, variables, weights
from tests.federations import federation, run, split_of


def learn(problem, algorithm):
    """(state, joint objective) at the end of each alternation; the objective before and after its Omega step."""
    simulation = problem.simulation(algorithm)
    state, found = simulation.init(0), []
    for _ in range(6):
        omega = np.asarray(state.shared.relation.omega)
        almost = simulation.advance(state, algorithm.omega_every - 1)
        w = weights(almost.shared.params)
        np.testing.assert_array_equal(almost.shared.relation.omega, omega)
        state = simulation.advance(almost, 1)
        found.append((omega, w, np.asarray(state.shared.relation.omega), np.asarray(state.shared.relation.safety)))
    return simulation, state, found


def joint(problem, algorithm, w, omega):
    """P(W) + R(W, Omega), with the ridge's term."""
    inverse = np.linalg.inv(omega)
    precision = algorithm.coupling * inverse + algorithm.shrinkage * np.eye(CLIENTS)
    extra = 0.5 * algorithm.coupling * algorithm.ridge**2 * np.trace(inverse)
    return problem.primal(algorithm.loss, w, precision) + extra


@pytest.mark.second
def test_the_learned_relation_is_the_closed_form_and_the_alternation_descends(x64):
    problem = tasks()
    algorithm = Mocha(
        loss="logistic", relationship="learned", coupling=0.5, shrinkage=0.05, ridge=0.1, passes=10, omega_every=60
    )
    simulation, state, found = learn(problem, algorithm)
    np.testing.assert_allclose(found[0][0], np.eye(CLIENTS) / CLIENTS)
    values = []
    for omega, w, new, _ in found:
        values += [joint(problem, algorithm, w, omega), joint(problem, algorithm, w, new)]
        root = sqrtm(w.reshape(CLIENTS, -1) @ w.reshape(CLIENTS, -1).T + algorithm.ridge**2 * np.eye(CLIENTS)).real
        np.testing.assert_allclose(new, root / np.trace(root), atol=1e-5)  # w is of the round before
        assert np.trace(new) == pytest.approx(1, abs=1e-12)
        assert np.linalg.eigvalsh(new)[0] > 0
        rng = np.random.default_rng(0)
        for _ in range(20):  # no other matrix of trace one is better
            shift = rng.normal(size=(CLIENTS, CLIENTS))
            other = new + 1e-2 * (shift + shift.T)
            other /= np.trace(other)
            if np.linalg.eigvalsh(other)[0] > 0:
                assert joint(problem, algorithm, w, other) > values[-1]
    assert (np.diff(values) < 1e-9).all()
    assert values[0] - values[-1] > 0.01
    # W is the image of the same duals under the new Omega.
    precision = algorithm.coupling * np.linalg.inv(found[-1][2]) + algorithm.shrinkage * np.eye(CLIENTS)
    mixing = np.linalg.inv(precision)
    image = np.stack([own.T @ x for own, x in zip(variables(state), problem.x, strict=True)])
    np.testing.assert_allclose(weights(state.shared.params), np.tensordot(mixing, image, axes=1), atol=1e-9)
    assert found[-1][3] == pytest.approx((np.abs(mixing).sum(1) / np.diag(mixing)).max())
    before = weights(state.shared.params), variables(state)
    state = simulation.advance(state, 1)
    gap = diagnosed(simulation, state)["duality gap"]
    expected = problem.primal("logistic", before[0], precision) - problem.dual("logistic", before[1], precision)
    assert gap == pytest.approx(expected, rel=1e-8)


@pytest.mark.second
def test_relations_that_are_in_the_data_are_learned(x64):
    """Clients 0 and 1 have the same truth, client 2 the opposite one: Omega says so."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=FEATURES)
    parts = []
    for sign in (1, 1, -1):
        x = rng.normal(size=(30, FEATURES))
        parts.append((x, sign * (x @ truth) + 0.1 * rng.normal(size=30)))
    data = federation(split_of(parts))
    params = Linear(jnp.zeros(FEATURES), jnp.zeros(()))
    algorithm = Mocha(loss="squared", relationship="learned", shrinkage=0.0, passes=3)
    simulation = Simulation(data, objective_of(params, "regression"), params, algorithm)
    omega = np.asarray(run(simulation, 100).shared.relation.omega)
    scale = np.sqrt(np.outer(np.diag(omega), np.diag(omega)))
    np.testing.assert_allclose(omega / scale, [[1, 1, -1], [1, 1, -1], [-1, -1, 1]], atol=0.05)
