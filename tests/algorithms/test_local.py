import jax
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.local import Global, Local
from idiolect.core.errors import ConfigError
from idiolect.core.random import stream
from idiolect.runtime.evaluate import Evaluator
from tests.federations import classification, client_of, flat, rows, run

SIZES = (9, 1, 30)


def stream_of(round, index):
    return stream(jax.random.key(0), "local", round, index)


def test_local_is_each_sampled_client_trained_apart():
    problem = classification(SIZES)
    simulation = problem.simulation(Local(rate=0.1, local_steps=3, batch_size=4), cohort=2, rounds=3)
    state = run(simulation, 3)
    expected = []
    for index in range(3):
        w = problem.params
        for round in range(3):
            if index in simulation.sampling.draw(jax.random.key(0), round, 2)[0]:
                w = problem.sgd(problem.client(index), stream_of(round, index), w, 0.1, 3)
        expected.append(flat(w))
    np.testing.assert_allclose(rows(state.private), expected, atol=1e-6)
    assert state.shared is None
    models = Evaluator(simulation).client_params(state, ("local",))
    np.testing.assert_array_equal(rows(models["local"]), rows(state.private))


def test_local_trains_as_a_client_of_fedavg_does():
    problem = classification(SIZES)
    client, key = problem.client(0), jax.random.key(0)
    options = {"rate": 0.1, "epochs": 2, "batch_size": 4}

    @jax.jit
    def both(w):
        alone, federated = Local(**options), FedAvg(**options)
        return alone.local(None, w, client, key)[1], federated.local(w, None, client, key)[0]

    alone, federated = both(problem.params)
    np.testing.assert_array_equal(flat(alone), flat(federated))
    assert np.abs(flat(alone) - flat(problem.params)).max() > 1e-2


def test_global_is_sgd_on_the_pooled_data():
    problem = classification(SIZES)
    simulation = problem.simulation(Global(rate=0.1, local_steps=3, batch_size=4), cohort=2)
    state = run(simulation, 2)
    pooled, w = client_of(problem.data.pooled(), problem.objective, 0), problem.params
    for round in range(2):
        w = problem.sgd(pooled, stream_of(round, 0), w, 0.1, 3)
    np.testing.assert_allclose(flat(state.shared.params), flat(w), atol=1e-6)
    (scores,) = Evaluator(simulation)(state)
    assert scores.count.tolist() == problem.data.test.sizes.tolist()  # on each client's own test data


@pytest.mark.parametrize(("key", "value"), [("rate", 0.0), ("local_steps", 0), ("epochs", -2), ("batches", "x")])
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"local: {key} = "):
        Local(**{key: value})
    with pytest.raises(ConfigError, match=f"global: {key} = "):
        Global(**{key: value})
