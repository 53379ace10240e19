"""The fine-tuned model against SGD written out, with each way of drawing mini-batches."""

import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvgFineTuned
from idiolect.algorithms.parts.fine_tuning import FineTuned
from idiolect.algorithms.registry import ALGORITHMS
from idiolect.algorithms.reptile import Reptile
from idiolect.core.random import stream
from idiolect.runtime.evaluate import Evaluator
from tests.federations import classification, flat, rows, run


@pytest.mark.parametrize("rate", [None, 0.3])
@pytest.mark.parametrize("order", ["fresh", "epoch", "cyclic"])
def test_it_is_sgd_from_the_shared_model_on_the_client_s_mini_batches(order, rate):
    problem, round = classification((9, 1, 14)), 1
    method = FedAvgFineTuned(
        rate=0.2, local_steps=2, batch_size=4, batches=order, finetune_steps=5, finetune_rate=rate
    )
    simulation = problem.simulation(method)
    state = run(simulation, round)
    models = Evaluator(simulation).client_params(state, ("adapted", "global"))
    for index in range(3):
        key = stream(simulation.init(0).seed, "local", round, index)
        tuned = problem.sgd(problem.client(index, round), key, state.shared.params, rate or 0.2, 5, order)
        np.testing.assert_allclose(rows(models["adapted"])[index], flat(tuned), atol=1e-6)
        np.testing.assert_array_equal(rows(models["global"])[index], flat(state.shared.params))


def test_who_is_fine_tuned():
    assert {cls for cls in ALGORITHMS.values() if issubclass(cls, FineTuned)} == {FedAvgFineTuned, Reptile}
