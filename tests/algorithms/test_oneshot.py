"""One-shot averaging against the mean of the local optima, Local and FedAvg."""

import jax
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.local import Local
from idiolect.algorithms.oneshot import OneShot
from idiolect.core.errors import ConfigError
from idiolect.runtime.evaluate import Evaluator
from tests.contract import ignores_padding, is_the_same_however_executed
from tests.federations import flat, quadratics, rows, run, start_with
from tests.tiers import second

SIZES = (3, 1, 6, 2, 4)
OPTIONS = {"rate": 0.1, "local_steps": 3, "batch_size": 2, "batches": "cyclic"}


@pytest.mark.parametrize("weighting", ["uniform", second("size")])
def test_it_ends_at_the_mean_of_the_local_optima_and_not_at_the_optimum(weighting):
    problem = quadratics()
    p = problem.sizes / problem.sizes.sum() if weighting == "size" else np.full(4, 0.25)
    algorithm = OneShot(rate=0.3, local_steps=30, batch_size=0, weighting=weighting)
    simulation = problem.simulation(algorithm)
    models = Evaluator(simulation).client_params(run(simulation, 10), ("global", "local"))
    np.testing.assert_allclose(rows(models["local"]), problem.c, atol=1e-5)
    np.testing.assert_allclose(rows(models["global"]), np.tile(p @ problem.c, (4, 1)), atol=1e-5)
    assert np.abs(p @ problem.c - problem.optimum(p)).max() > 0.1


@pytest.mark.parametrize("weighting", ["uniform", second("size")])
def test_one_round_is_one_round_of_fedavg(weighting):
    problem = quadratics(SIZES, noise=1.0)
    one = run(problem.simulation(OneShot(**OPTIONS, weighting=weighting), cohort=3))
    fedavg = run(problem.simulation(FedAvg(**OPTIONS, weighting=weighting), cohort=3))
    np.testing.assert_allclose(flat(one.shared.params), flat(fedavg.shared.params), atol=1e-6)


def test_the_clients_train_as_under_local():
    problem = quadratics(SIZES, noise=1.0)
    one, local = (run(problem.simulation(m(**OPTIONS), cohort=3), 3) for m in (OneShot, Local))
    np.testing.assert_array_equal(rows(one.private.model), rows(local.private))


@pytest.mark.parametrize("weighting", ["uniform", "size"])
def test_the_average_is_of_the_latest_models_of_all_that_have_reported(weighting):
    """Round after round: not of the last cohort alone, and not of clients that never took part."""
    problem = quadratics(SIZES, noise=1.0)
    algorithm = OneShot(**OPTIONS, weighting=weighting)
    simulation = problem.simulation(algorithm, cohort=2)
    state, reported = simulation.init(0), np.zeros(5, bool)
    np.testing.assert_array_equal(flat(state.shared.params), flat(problem.params))
    seen = set()
    for round in range(8):
        reported[np.asarray(simulation.sampling.draw(state.seed, round, 2)[0])] = True
        seen.add(int(reported.sum()))
        state = simulation.advance(state, 1)
        np.testing.assert_array_equal(state.private.reported, reported)
        weights = reported * (problem.sizes if weighting == "size" else 1)
        mean = np.average(rows(state.private.model), axis=0, weights=weights)
        np.testing.assert_allclose(flat(state.shared.params), mean, atol=2e-6)
    assert len(seen) >= 3


def test_nothing_received_enters_the_training_and_only_changes_are_sent():
    problem = quadratics(SIZES, noise=1.0)
    client, key, algorithm = problem.client(2), jax.random.key(0), OneShot(**OPTIONS)
    start = algorithm.init(start_with(problem.params), key)
    other = jax.tree.map(lambda leaf: leaf + 1, start)
    local = jax.jit(lambda view, own: algorithm.local(view, own, client, key))
    first, own = local(start, algorithm.init_private(start_with(problem.params), key))
    again, _ = local(other, algorithm.init_private(start_with(problem.params), key))
    np.testing.assert_array_equal(flat(first), flat(again))
    np.testing.assert_array_equal(flat(first.change), flat(own.model))
    second, after = local(start, own)
    assert (bool(first.first), bool(second.first)) == (True, False)
    np.testing.assert_allclose(flat(second.change), flat(after.model) - flat(own.model), atol=1e-7)


def test_the_server_keeps_one_model_however_many_clients_there_are():
    problem = quadratics(SIZES, noise=1.0)
    shared = problem.simulation(OneShot()).init(0).shared
    assert sum(leaf.size for leaf in jax.tree.leaves(shared)) == flat(problem.params).size + 1


@pytest.mark.second
def test_neither_execution_nor_padding_changes_anything():
    algorithm = OneShot(**OPTIONS, weighting="size")
    is_the_same_however_executed(algorithm)
    ignores_padding(algorithm, rounds=2)


@pytest.mark.parametrize(("key", "value"), [("rate", 0.0), ("local_steps", 0), ("weighting", "sizes")])
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"one-shot: {key} = "):
        OneShot(**{key: value})
