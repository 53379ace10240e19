"""FedProx: the prox point in closed form, FedAvg at mu = 0, w_t at mu -> infinity."""

import jax
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.fedprox import FedProx
from idiolect.algorithms.registry import build
from idiolect.core.errors import ConfigError
from tests import contract
from tests.federations import classification, flat, quadratics, run, start_with
from tests.tiers import second


@pytest.mark.parametrize(
    "options", [{"local_steps": 3}, second({"epochs": 2, "weighting": "uniform", "server_optimizer": "adam"})]
)
def test_without_the_prox_term_it_is_fedavg(options):
    problem = classification()
    options = {"rate": 0.1, "batch_size": 4} | options
    states = [
        run(problem.simulation(method, cohort=3), 3)
        for method in (FedAvg(**options), FedProx(prox_weight=0, **options))
    ]
    average, same = (flat(state.shared.params) for state in states)
    np.testing.assert_allclose(same, average, atol=1e-6, rtol=0)


@pytest.mark.parametrize("mu", [0.3, 2.0])
def test_many_exact_steps_end_at_the_prox_point(x64, mu):
    """w_i = (A_i + mu I)^-1 (A_i c_i + mu w_t), eq. (2) in closed form; the server takes the weighted mean."""
    problem = quadratics(dtype=np.float64, noise=1.0)
    method = FedProx(prox_weight=mu, rate=1 / (problem.smooth + mu), local_steps=250, batch_size=0)
    start = contract.vector(problem.params)
    points = [problem.prox(i, start, mu) for i in range(problem.clients)]
    for index in (0, 2):
        message, _ = contract.sent_by(
            method, problem.client(index), method.init(start_with(problem.params), contract.KEY)
        )
        np.testing.assert_allclose(flat(message), points[index], atol=1e-10, rtol=0)
    state = run(problem.simulation(method))
    np.testing.assert_allclose(
        flat(state.shared.params), np.average(points, axis=0, weights=problem.sizes), atol=1e-10, rtol=0
    )


def test_a_step_is_the_gradient_of_half_the_squared_distance(x64):
    """Two steps by hand: the second feels mu (w - w_t), which neither the unsquared norm nor a lost 1/2 gives."""
    problem, mu, rate = quadratics(dtype=np.float64), 0.8, 0.1
    start = contract.vector(problem.params)
    method = FedProx(prox_weight=mu, rate=rate, local_steps=2, batch_size=4)
    message, _ = contract.sent_by(method, problem.client(1), method.init(start_with(problem.params), contract.KEY))
    slope = lambda w: problem.a[1] @ (w - problem.c[1])  # noqa: E731
    once = start - rate * slope(start)
    twice = once - rate * (slope(once) + mu * (once - start))
    np.testing.assert_allclose(flat(message), twice, atol=1e-12, rtol=0)


def test_a_large_prox_weight_keeps_the_model(x64):
    """||w_i - w_t|| <= ||grad f_i(w_t)|| / mu, tight as mu grows."""
    problem = quadratics(dtype=np.float64)
    start = contract.vector(problem.params)
    for mu in (1e2, 1e6):
        method = FedProx(prox_weight=mu, rate=1 / (problem.smooth + mu), local_steps=5, batch_size=0)
        for index in (0, 1):
            message, _ = contract.sent_by(
                method, problem.client(index), method.init(start_with(problem.params), contract.KEY)
            )
            bound = np.linalg.norm(problem.a[index] @ (start - problem.c[index])) / mu
            moved = np.linalg.norm(flat(message) - start)
            assert (1 - problem.smooth / mu) * bound <= moved <= bound


def test_the_fixed_point_is_where_the_moreau_gradients_cancel(x64):
    """w = mean_i prox_i(w): the minimiser of the mean of the Moreau envelopes, not of the mean of the f_i."""
    problem, mu = quadratics(dtype=np.float64), 2.0
    hessians = [problem.moreau_hessian(i, mu) for i in range(problem.clients)]
    fixed = np.linalg.solve(sum(hessians), sum(h @ c for h, c in zip(hessians, problem.c, strict=True)))
    method = FedProx(
        prox_weight=mu, rate=1 / (problem.smooth + mu), local_steps=60, batch_size=0, weighting="uniform"
    )
    state = run(problem.simulation(method), 120)
    np.testing.assert_allclose(flat(state.shared.params), fixed, atol=1e-9, rtol=0)
    assert np.linalg.norm(fixed - problem.optimum()) > 1e-2


@pytest.mark.second
def test_the_contract_holds():
    method = FedProx(rate=0.1, local_steps=3, batch_size=2)
    contract.is_the_same_however_executed(method)
    contract.ignores_padding(method)
    contract.keeps_nothing(method)


def test_only_the_model_is_sent():
    problem, method = quadratics(), FedProx(local_steps=1)
    message, _ = contract.sent_by(method, problem.client(0), method.init(start_with(problem.params), contract.KEY))
    assert jax.tree.structure(message) == jax.tree.structure(problem.params)


@pytest.mark.parametrize(("key", "value"), [("prox_weight", -0.1), ("prox_weight", float("nan")), ("rate", 0.0)])
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"fedprox: {key} = "):
        build({"name": "fedprox", key: value})
