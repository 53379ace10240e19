"""Ditto against FedAvg, Local and the prox points of quadratics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.ditto import Ditto, Personal
from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.local import Local
from idiolect.core.errors import ConfigError
from idiolect.runtime.evaluate import Evaluator
from tests.contract import ignores_padding, is_the_same_however_executed
from tests.federations import flat, quadratics, rows, run
from tests.tiers import second

SIZES = (3, 1, 6, 2, 4)
OPTIONS = {"rate": 0.1, "local_steps": 3, "batch_size": 2, "batches": "cyclic"}
LAMBDA = 0.8


def test_the_global_model_is_fedavgs_to_the_last_bit():
    problem = quadratics(SIZES, noise=1.0)
    ditto, fedavg = (run(problem.simulation(m(**OPTIONS), cohort=3), 4) for m in (Ditto, FedAvg))
    np.testing.assert_array_equal(flat(ditto.shared.params), flat(fedavg.shared.params))


@pytest.mark.parametrize(
    ("steps", "own"),
    [
        second({"local_steps": 3, "batch_size": 0}, {}),
        ({"local_steps": 3, "batch_size": 2}, {}),
        second({"epochs": 2, "batch_size": 2}, {}),
        second({"local_steps": 2, "batch_size": 2}, {"personal_steps": 5}),
        ({"local_steps": 2, "batch_size": 2, "batches": "cyclic"}, {"personal_steps": 5}),
    ],
)
def test_without_the_pull_it_is_local(steps, own):
    """Exactly, on mini-batches too: the personal steps draw what Local draws."""
    problem = quadratics(SIZES, noise=1.0)
    alone = steps | {"local_steps": own["personal_steps"]} if own else steps
    ditto = run(problem.simulation(Ditto(rate=0.3, personal_rate=0.1, prox_weight=0.0, **steps, **own), cohort=3), 3)
    local = run(problem.simulation(Local(rate=0.1, **alone), cohort=3), 3)
    np.testing.assert_array_equal(rows(ditto.private), rows(local.private))
    assert np.abs(rows(ditto.private) - flat(problem.params)).max() > 0.05


def test_the_personal_steps_are_held_near_the_model_received():
    """v <- v - eta (A (v - c) + lambda (v - w_t)), written out; w_t stays while w_i moves."""
    problem, w, v = quadratics(), np.linspace(-1, 2, 5), np.linspace(3, 0, 5)
    algorithm = Ditto(rate=0.3, local_steps=2, batch_size=0, prox_weight=LAMBDA, personal_rate=0.2, personal_steps=4)
    client, key = problem.client(0), jax.random.key(0)
    sent, own = jax.jit(lambda: algorithm.local(problem.tree(w), problem.tree(v), client, key))()
    a, c, end = problem.a[0], problem.c[0], w
    for _ in range(4):
        v = v - 0.2 * (a @ (v - c) + LAMBDA * (v - w))
    for _ in range(2):
        end = end - 0.3 * a @ (end - c)
    np.testing.assert_allclose(flat(own), v, atol=1e-5)
    np.testing.assert_allclose(flat(sent), end, atol=1e-5)


def test_the_personal_models_end_at_the_prox_points_of_the_optimum():
    """One full-batch step a round: w* minimises sum_i n_i f_i; v_i* = (A_i + lambda I)^-1 (A_i c_i + lambda w*)."""
    problem = quadratics()
    best = problem.optimum(problem.sizes)
    simulation = problem.simulation(Ditto(rate=0.3, local_steps=1, batch_size=0, prox_weight=LAMBDA))
    state = run(simulation, 150)
    np.testing.assert_allclose(flat(state.shared.params), best, atol=1e-5)
    models = Evaluator(simulation).client_params(state, ("personal", "global"))
    points = [problem.prox(i, best, LAMBDA) for i in range(4)]
    np.testing.assert_allclose(rows(models["personal"]), points, atol=1e-5)
    np.testing.assert_allclose(rows(models["global"]), np.tile(best, (4, 1)), atol=1e-5)


def test_a_strong_pull_leaves_the_model_received():
    """lambda to infinity with eta = 1 / lambda: v_i = w_t - grad f_i / lambda."""
    problem = quadratics(SIZES, noise=1.0)
    algorithm = Ditto(prox_weight=1e5, personal_rate=1e-5, **OPTIONS)
    simulation = problem.simulation(algorithm)
    state = run(simulation, 2)
    received = flat(state.shared.params)
    personal = rows(simulation.advance(state, 1).private)
    np.testing.assert_allclose(personal, np.tile(received, (5, 1)), atol=1e-4)
    assert np.abs(received - flat(problem.params)).max() > 0.05


def test_the_message_is_fedavgs_whatever_the_private_model():
    problem, key = quadratics(SIZES, noise=1.0), jax.random.key(0)
    client = problem.client(2)
    local = jax.jit(lambda v: Ditto(**OPTIONS).local(problem.params, v, client, key)[0])
    sent, other = (local(jax.tree.map(lambda leaf, s=s: s * leaf, problem.params)) for s in (1.0, -3.0))
    assert jax.tree.structure(sent) == jax.tree.structure(problem.params)
    np.testing.assert_array_equal(flat(sent), flat(other))


@pytest.mark.parametrize("begun", [False, True])
def test_a_personal_model_can_start_at_the_first_model_received(begun):
    """Before its client's first round it is the received model; from then on nothing differs from the default."""
    problem, key = quadratics(SIZES, noise=1.0), jax.random.key(0)
    client, received, own = problem.client(2), *(problem.tree(np.linspace(a, 2, 5)) for a in (-1, 5))
    late, usual = Ditto(personal_start="received", **OPTIONS), Ditto(**OPTIONS)
    private = Personal(own, jnp.asarray(begun))
    expected = own if begun else received
    sent, after = jax.jit(lambda: late.local(received, private, client, key))()
    usual_sent, usual_after = jax.jit(lambda: usual.local(received, expected, client, key))()
    np.testing.assert_array_equal(flat(sent), flat(usual_sent))
    np.testing.assert_allclose(flat(after.model), flat(usual_after), atol=1e-6)
    assert np.abs(flat(after.model) - flat(expected)).max() > 0.05
    assert bool(after.begun)
    np.testing.assert_array_equal(flat(late.models(received, private, client, key)["personal"]), flat(expected))


def test_clients_that_wait_for_their_first_round_start_where_the_global_model_is_by_then():
    """Three of five clients a round: who comes later starts elsewhere than at the initial model."""
    problem = quadratics(SIZES, noise=1.0)
    simulations = [
        problem.simulation(Ditto(personal_start=start, **OPTIONS), cohort=3) for start in ("received", "initial")
    ]
    (first, begun), (usual, _) = (
        (s.private.model, s.private.begun) if hasattr(s.private, "begun") else (s.private, None)
        for s in (run(sim, 1) for sim in simulations)
    )
    assert begun.sum() == 3
    np.testing.assert_allclose(rows(first)[begun], rows(usual)[begun], atol=1e-6)
    late, usual = (run(sim, 4).private for sim in simulations)
    differs = np.abs(rows(late.model) - rows(usual)).max(axis=1) > 1e-3
    assert late.begun.all()
    np.testing.assert_array_equal(differs, ~np.asarray(begun))
    everyone = [
        run(problem.simulation(Ditto(personal_start=s, **OPTIONS)), 3).private for s in ("received", "initial")
    ]
    np.testing.assert_allclose(rows(everyone[0].model), rows(everyone[1]), atol=1e-6)


@pytest.mark.second
def test_a_model_that_waits_does_not_depend_on_execution_or_padding():
    is_the_same_however_executed(Ditto(personal_start="received", **OPTIONS))
    ignores_padding(Ditto(personal_start="received", **OPTIONS))


@pytest.mark.second
def test_neither_execution_nor_padding_changes_anything():
    is_the_same_however_executed(Ditto(**OPTIONS))
    ignores_padding(Ditto(**OPTIONS))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("prox_weight", -1.0),
        ("personal_rate", 0.0),
        ("personal_steps", -1),
        ("rate", 0.0),
        ("weighting", "sizes"),
        ("personal_start", "late"),
    ],
)
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"ditto: {key} = "):
        Ditto(**{key: value})
