"""Reptile against FedAvg and closed forms on quadratics."""

import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvgFineTuned
from idiolect.algorithms.reptile import Reptile
from idiolect.core.errors import ConfigError
from idiolect.runtime.evaluate import Evaluator
from tests.contract import ignores_padding, is_the_same_however_executed, keeps_nothing
from tests.federations import flat, quadratics, rows, run

OPTIONS = {"rate": 0.1, "local_steps": 3, "batch_size": 2, "batches": "cyclic"}


def test_with_epsilon_1_it_is_fedavg_with_fine_tuning():
    problem, names = quadratics((3, 1, 6, 2, 4), noise=1.0), ("adapted", "global")
    found = []
    for algorithm in (Reptile(server_rate=1.0, **OPTIONS), FedAvgFineTuned(weighting="uniform", **OPTIONS)):
        simulation = problem.simulation(algorithm, cohort=3)
        models = Evaluator(simulation).client_params(run(simulation, 3), names)
        found.append(np.stack([rows(models[name]) for name in names]))
    np.testing.assert_allclose(*found, atol=1e-6)
    assert np.abs(found[0][0] - found[0][1]).max() > 0.1  # adapted and global differ


@pytest.mark.parametrize("weighting", ["uniform", "size"])
def test_the_server_goes_epsilon_of_the_way(weighting):
    """w + epsilon mean_i (w_i - w), w_i = c_i + (I - rate A_i)^K (w - c_i)."""
    problem = quadratics()
    algorithm = Reptile(rate=0.2, local_steps=3, batch_size=0, server_rate=0.3, weighting=weighting)
    start = flat(problem.params).astype(float)
    moves = [np.linalg.matrix_power(np.eye(5) - 0.2 * a, 3) @ (start - c) + c - start
             for a, c in zip(problem.a, problem.c, strict=True)]  # fmt: skip
    mean = np.average(moves, axis=0, weights=problem.sizes if weighting == "size" else None)
    after = flat(run(problem.simulation(algorithm)).shared.params)
    np.testing.assert_allclose(after, start + 0.3 * mean, atol=1e-5)


def test_epsilon_does_not_move_the_fixed_point():
    """sum_i (I - (I - rate A_i)^K) (w - c_i) = 0."""
    problem = quadratics()
    pulls = [np.eye(5) - np.linalg.matrix_power(np.eye(5) - 0.2 * a, 3) for a in problem.a]
    fixed = np.linalg.solve(sum(pulls), sum(p @ c for p, c in zip(pulls, problem.c, strict=True)))
    algorithm = Reptile(rate=0.2, local_steps=3, batch_size=0, server_rate=0.6)
    np.testing.assert_allclose(flat(run(problem.simulation(algorithm), 80).shared.params), fixed, atol=1e-5)


@pytest.mark.second
def test_neither_execution_nor_padding_changes_anything_and_nothing_is_kept():
    is_the_same_however_executed(Reptile(**OPTIONS))
    ignores_padding(Reptile(**OPTIONS))
    keeps_nothing(Reptile(**OPTIONS))


@pytest.mark.parametrize(
    ("key", "value"), [("server_rate", 0.0), ("finetune_steps", 0), ("server_optimizer", None), ("rate", -1.0)]
)
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"reptile: {key} = "):
        Reptile(**{key: value})
