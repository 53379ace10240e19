import jax
import numpy as np
import pytest

from idiolect import tree
from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.local import Global, Local
from idiolect.errors import ConfigError
from idiolect.evaluate import Evaluator
from idiolect.random import stream
from tests.federations import classification, client_of, flat, rows, run

SIZES = (9, 1, 30)


def by_hand(w, client, rounds=2, rate=0.1, steps=3):
    """Mini-batch SGD written out."""

    @jax.jit
    def train(w):
        for round in range(rounds):
            batches = client.batches(stream(jax.random.key(0), "local", round, client.id), steps, 4, "fresh")
            for step in range(steps):
                batch = jax.tree.map(lambda a, step=step: a[step], batches)
                w = tree.add_scaled(w, -rate, client.grad(w, batch))
        return w

    return train(w)


def test_local_is_each_client_trained_apart():
    problem = classification(SIZES)
    simulation = problem.simulation(Local(rate=0.1, local_steps=3, batch_size=4))
    state = run(simulation, 2)
    expected = [flat(by_hand(problem.params, problem.client(i))) for i in range(3)]
    np.testing.assert_allclose(rows(state.private), expected, atol=1e-6)
    models = Evaluator(simulation).client_params(state, ("local",))
    np.testing.assert_array_equal(rows(models["local"]), rows(state.private))


def test_only_sampled_clients_train():
    problem = classification(SIZES)
    simulation = problem.simulation(Local(rate=0.1, local_steps=1, batch_size=4), cohort=1)
    before = rows(simulation.init(0).private)
    state = run(simulation)
    changed = np.any(rows(state.private) != before, axis=1)
    sampled, _ = simulation.sampling.draw(jax.random.key(0), 0, 1)
    np.testing.assert_array_equal(np.flatnonzero(changed), sampled)
    assert state.shared is None


def test_local_takes_epochs_as_fedavg_does():
    problem = classification(SIZES)
    state = run(problem.simulation(Local(rate=0.1, epochs=2, batch_size=4)))
    mean = np.average(rows(state.private), axis=0, weights=SIZES)
    same = run(problem.simulation(FedAvg(rate=0.1, epochs=2, batch_size=4)))
    np.testing.assert_allclose(mean, flat(same.shared.params), atol=1e-6)


def test_global_is_sgd_on_the_pooled_data():
    problem = classification(SIZES)
    simulation = problem.simulation(Global(rate=0.1, local_steps=3, batch_size=4), cohort=2)
    state = run(simulation, 2)
    pooled = client_of(problem.data.pooled(), problem.objective, 0)
    expected = flat(by_hand(problem.params, pooled))
    np.testing.assert_allclose(flat(state.shared.params), expected, atol=1e-6)
    scores = Evaluator(simulation)(state, splits=("test",))
    assert [len(s.loss) for s in scores] == [3]  # evaluated on each client's own test data


@pytest.mark.parametrize(("key", "value"), [("rate", 0.0), ("local_steps", 0), ("epochs", -2), ("batches", "x")])
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"local: {key} = "):
        Local(**{key: value})
    with pytest.raises(ConfigError, match=f"global: {key} = "):
        Global(**{key: value})
