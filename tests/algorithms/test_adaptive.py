"""FedAdagrad, FedAdam and FedYogi against Algorithm 2 written out in numpy, and its limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.adaptive import FedAdagrad, FedAdam, FedYogi
from idiolect.algorithms.base import Cohort
from idiolect.algorithms.fedavg import FedAvg
from idiolect.core.errors import ConfigError
from tests.contract import ignores_padding, is_the_same_however_executed, keeps_nothing
from tests.federations import flat, quadratics, run, start_with
from tests.tiers import second

METHODS = [FedAdagrad, FedAdam, FedYogi]


def one_round(algorithm, change):
    """x_1 - x_0 of a server that hears of one client's change, from x_0 = 0."""
    cohort = Cohort(jnp.arange(1), jnp.ones(1), jnp.ones(1, bool), 1, jnp.asarray(1.0), 1)
    start = algorithm.init(start_with(jnp.zeros_like(change)), jax.random.key(0))
    return algorithm.aggregate(start, cohort, change[None]).params


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighting", ["uniform", second("size")])
def test_three_rounds_are_algorithm_2_written_out(x64, method, weighting):
    problem = quadratics(dtype=np.float64)
    eta, b1, b2, tau, eta_l, steps = 0.3, 0.7, 0.6, 0.4, 0.2, 3
    decay = {} if method is FedAdagrad else {"second_momentum": b2}
    local = {"rate": eta_l, "local_steps": steps, "batch_size": 0, "weighting": weighting}
    algorithm = method(server_rate=eta, momentum=b1, adaptivity=tau, **local, **decay)
    x = flat(problem.params)
    m, v, ups, downs = np.zeros(5), np.full(5, tau**2), 0, 0
    for _ in range(3):
        shrink = [np.linalg.matrix_power(np.eye(5) - eta_l * a, steps) for a in problem.a]
        ends = [c + s @ (x - c) for c, s in zip(problem.c, shrink, strict=True)]
        delta = np.average(ends, axis=0, weights=problem.sizes if weighting == "size" else None) - x
        m = b1 * m + (1 - b1) * delta
        ups, downs = ups + (delta**2 > v).sum(), downs + (delta**2 < v).sum()
        if method is FedAdagrad:
            v = v + delta**2
        elif method is FedAdam:
            v = b2 * v + (1 - b2) * delta**2
        else:
            v = v - (1 - b2) * delta**2 * np.sign(v - delta**2)
        x = x + eta * m / (np.sqrt(v) + tau)
    assert ups > 0  # Yogi's sign takes both values
    assert downs > 0
    state = run(problem.simulation(algorithm), 3)
    np.testing.assert_allclose(flat(state.shared.params), x, atol=1e-12)
    np.testing.assert_allclose(flat(state.shared.first), m, atol=1e-12)
    np.testing.assert_allclose(flat(state.shared.second), v, atol=1e-12)


@pytest.mark.parametrize(
    ("method", "options"),
    [(FedAdagrad, {}), (FedAdam, {"second_momentum": 0.0}), (FedYogi, {"second_momentum": 0.0})],
)
def test_without_memory_and_adaptivity_the_step_is_the_sign(method, options):
    """tau to 0, beta_1 = beta_2 = 0: v = Delta^2, hence x moves by eta in every entry that changes at all."""
    change = jnp.array([3.0, -0.01, 0.0])
    step = one_round(method(server_rate=0.2, momentum=0.0, adaptivity=1e-9, **options), change)
    np.testing.assert_allclose(step, [0.2, -0.2, 0.0], rtol=1e-5)


@pytest.mark.parametrize(
    ("method", "options", "slowness"),
    [(FedAdagrad, {}, 2), (FedAdam, {"second_momentum": 0.0}, 1), (FedYogi, {"second_momentum": 0.5}, 2)],
)
def test_with_a_large_tau_it_is_fedavg_with_a_server_step(method, options, slowness):
    """tau to infinity, beta_1 = 0: eta / (sqrt(v) + tau) tends to one rate; v stays tau^2 unless Adam forgets it."""
    problem, tau = quadratics(), 1e4
    local = {"rate": 0.2, "local_steps": 3, "batch_size": 0, "weighting": "uniform"}
    algorithm = method(server_rate=slowness * tau * 0.7, momentum=0.0, adaptivity=tau, **local, **options)
    plain = FedAvg(**local, server_optimizer="sgd", server_rate=0.7)
    limit, averaged = (flat(run(problem.simulation(a), 3).shared.params) for a in (algorithm, plain))
    np.testing.assert_allclose(limit, averaged, atol=2e-4)
    assert np.abs(averaged - flat(problem.params)).max() > 0.3


def test_momentum_is_the_share_of_the_old_direction():
    """No correction of the bias: the first step is 1 - beta_1 of that without momentum."""
    change = jnp.array([0.5, -2.0])
    plain, slow = (one_round(FedAdam(momentum=b), change) for b in (0.0, 0.9))
    np.testing.assert_allclose(slow, 0.1 * plain, rtol=1e-5)
    assert FedAdagrad().momentum == 0


@pytest.mark.second
def test_neither_execution_nor_padding_changes_anything_and_nothing_is_kept():
    algorithm = FedYogi(rate=0.1, local_steps=3, batch_size=2, batches="cyclic", server_rate=0.1)
    is_the_same_however_executed(algorithm)
    ignores_padding(algorithm, rounds=2)
    keeps_nothing(algorithm)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("server_rate", 0.0, "must be greater than 0"),
        ("momentum", 1.0, "must be less than 1"),
        ("momentum", -0.1, "must not be negative"),
        ("adaptivity", 0.0, "must be greater than 0"),
        ("rate", -1.0, "must be greater than 0"),
        ("weighting", "sizes", "is not one of"),
    ],
)
def test_what_is_out_of_range_is_named(method, key, value, why):
    with pytest.raises(ConfigError, match=f"{method.name}: {key} = .* {why}"):
        method(**{key: value})


@pytest.mark.parametrize("method", [FedAdam, FedYogi])
def test_the_second_momentum_is_checked(method):
    with pytest.raises(ConfigError, match=f"{method.name}: second_momentum = 1.0 must be less than 1"):
        method(second_momentum=1.0)
