"""APFL against FedAvg, Local, and automatic differentiation of the mixture."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.apfl import APFL, Own
from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.local import Local
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.runtime.evaluate import Evaluator
from tests.contract import ignores_padding, is_the_same_however_executed
from tests.federations import classification, flat, quadratics, rows, run
from tests.tiers import second

SIZES = (3, 1, 6, 2, 4)
OPTIONS = {"rate": 0.1, "local_steps": 3, "batch_size": 2, "batches": "cyclic"}


def personal(simulation, state):
    return rows(Evaluator(simulation).client_params(state, ("personal",))["personal"])


@pytest.mark.parametrize("adaptive", [False, second(True)])
def test_the_global_model_is_fedavgs(adaptive):
    problem = quadratics(SIZES, noise=1.0)
    apfl = run(problem.simulation(APFL(adaptive=adaptive, **OPTIONS), cohort=3), 4)
    fedavg = run(problem.simulation(FedAvg(weighting="uniform", **OPTIONS), cohort=3), 4)
    np.testing.assert_allclose(flat(apfl.shared.params), flat(fedavg.shared.params), atol=1e-6)


def test_a_mixture_of_nothing_own_is_fedavg():
    problem = quadratics(SIZES, noise=1.0)
    simulation = problem.simulation(APFL(mixture=0.0, **OPTIONS), cohort=3)
    state = run(simulation, 3)
    np.testing.assert_array_equal(personal(simulation, state), np.tile(flat(state.shared.params), (5, 1)))
    np.testing.assert_array_equal(rows(state.private.model), np.tile(flat(problem.params), (5, 1)))


def test_a_mixture_of_nothing_shared_is_local():
    problem = quadratics(SIZES, noise=1.0)
    simulation = problem.simulation(APFL(mixture=1.0, **OPTIONS), cohort=3)
    local = run(problem.simulation(Local(**OPTIONS), cohort=3), 3)
    np.testing.assert_allclose(personal(simulation, run(simulation, 3)), rows(local.private), atol=1e-6)


@pytest.mark.parametrize("adaptive", [second(False), True])
@pytest.mark.parametrize("steps", [{"batch_size": 0}, second({"batch_size": 4}), {"batch_size": 4, "epochs": 1}])
def test_a_round_descends_the_mixtures_loss_in_v_and_alpha(adaptive, steps):
    """Gradients of f_i(alpha v + (1 - alpha) w) by automatic differentiation; alpha moves in the first step only."""
    problem, key, rate = classification(l2=0.1), jax.random.key(3), 0.3
    client = problem.client(0)  # 9 samples: 3 mini-batches in an epoch
    algorithm = APFL(rate=rate, local_steps=3, adaptive=adaptive, **steps)
    w, v, alpha = problem.params, jax.tree.map(lambda leaf: 0.5 - leaf, problem.params), jnp.asarray(0.4)
    sent, own = jax.jit(lambda: algorithm.local(w, Own(v, alpha), client, key))()

    def mixed_loss(v, alpha, w, batch):
        return client.loss(tree.lerp(w, v, alpha), batch)

    slopes = jax.jit(jax.grad(mixed_loss, argnums=(0, 1)))
    plain = jax.jit(lambda w, batch: client.grad(w, batch))
    everything = client.take(jnp.arange(9))
    order = "epoch" if "epochs" in steps else "fresh"
    for step in range(3):
        batch = client.batch(key, step, 4, order) if steps["batch_size"] else everything
        to_v, to_alpha = slopes(v, alpha, w, batch)
        w = tree.add_scaled(w, -rate, plain(w, batch))
        v = tree.add_scaled(v, -rate, to_v)
        if adaptive and step == 0:
            assert abs(to_alpha) > 0.05
            alpha = jnp.clip(alpha - rate * to_alpha, 0, 1)
    np.testing.assert_allclose(flat(sent), flat(w), atol=1e-6)
    np.testing.assert_allclose(flat(own.model), flat(v), atol=1e-6)
    np.testing.assert_allclose(own.share, alpha, atol=1e-6)


@pytest.mark.parametrize(("scale", "end"), [(1.0, 1.0), (10.0, 0.0)])
def test_alpha_stays_between_0_and_1(scale, end):
    """w = 0, v = s c: the slope in alpha = 1/2 is s (s / 2 - 1) c' A c; a large rate goes beyond the end."""
    problem = quadratics()
    algorithm = APFL(rate=1e3, local_steps=1, batch_size=0, adaptive=True)
    w, own = problem.tree(np.zeros(5)), Own(problem.tree(scale * problem.c[0]), jnp.asarray(0.5))
    _, after = jax.jit(lambda: algorithm.local(w, own, problem.client(0), jax.random.key(0)))()
    assert float(after.share) == end


def test_the_mixtures_end_at_the_local_optima_and_the_global_model_at_its_own():
    """0 < alpha < 1, one full-batch step a round: the gradient in v_i vanishes only where vbar_i = c_i."""
    problem = quadratics()
    best = problem.optimum()
    simulation = problem.simulation(APFL(rate=0.3, local_steps=1, batch_size=0, mixture=0.6))
    state = run(simulation, 300)
    np.testing.assert_allclose(flat(state.shared.params), best, atol=1e-5)
    np.testing.assert_allclose(personal(simulation, state), problem.c, atol=1e-5)
    np.testing.assert_allclose(rows(state.private.model), (problem.c - 0.4 * best) / 0.6, atol=2e-5)


def test_the_message_is_fedavgs_whatever_the_private_state():
    problem, key = quadratics(SIZES, noise=1.0), jax.random.key(0)
    client = problem.client(2)
    algorithm = APFL(adaptive=True, **OPTIONS)
    local = jax.jit(lambda own: algorithm.local(problem.params, own, client, key)[0])
    privates = [Own(jax.tree.map(lambda leaf, s=s: s * leaf, problem.params), jnp.asarray(a))
                for s, a in ((1.0, 0.5), (-3.0, 0.9))]  # fmt: skip
    sent, other = map(local, privates)
    assert jax.tree.structure(sent) == jax.tree.structure(problem.params)
    np.testing.assert_array_equal(flat(sent), flat(other))


@pytest.mark.second
def test_neither_execution_nor_padding_changes_anything():
    is_the_same_however_executed(APFL(adaptive=True, **OPTIONS))
    ignores_padding(APFL(adaptive=True, **OPTIONS))


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("mixture", 1.1, "must not be greater than 1"),
        ("mixture", -0.1, "must not be negative"),
        ("rate", 0.0, "must be greater than 0"),
    ],
)
def test_what_is_out_of_range_is_named(key, value, why):
    with pytest.raises(ConfigError, match=f"apfl: {key} = .* {why}"):
        APFL(**{key: value})
