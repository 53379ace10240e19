import jax
import jax.numpy as jnp
import numpy as np
import pytest
from idiolect import tree
from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.local import Global, Local
from idiolect.errors import ConfigError
from idiolect.evaluate import Evaluator
from idiolect.random import stream

from tests.federations import classification, flat, rows, run

SIZES = (9, 1, 30)


def sgd_by_hand(client, w, round, rate, steps):
    key = stream(jax.random.key(0), "local", round, int(client.id))
    step = jax.jit(lambda w, batch: tree.add_scaled(w, -rate, client.grad(w, batch)))
    batches = client.batches(key, steps, 4, "fresh")
    for number in range(steps):
        w = step(w, jax.tree.map(lambda a: a[number], batches))
    return w


def test_local_is_each_client_trained_apart():
    problem = classification(SIZES)
    simulation = problem.simulation(Local(rate=0.1, local_steps=3, batch_size=4))
    state = run(simulation, 2)
    expected = []
    for index in range(3):
        w = problem.params
        for round in range(2):
            w = sgd_by_hand(problem.client(index, round), w, round, 0.1, 3)
        expected.append(flat(w))
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
    w = problem.params
    whole = problem.client(0)
    for round in range(2):
        pooled = type(whole)(
            whole.x,
            whole.y,
            jnp.asarray(0, jnp.int32),
            jnp.asarray(sum(SIZES), jnp.int32),
            jnp.asarray(0, jnp.int32),
            jnp.asarray(round, jnp.int32),
            whole.objective,
        )
        w = sgd_by_hand(pooled, w, round, 0.1, 3)
    np.testing.assert_allclose(flat(state.shared.params), flat(w), atol=1e-6)
    scores = Evaluator(simulation)(state, splits=("test",))
    assert [len(s.loss) for s in scores] == [3]  # evaluated on each client's own test data


@pytest.mark.parametrize(("key", "value"), [("rate", 0.0), ("local_steps", 0), ("epochs", -2), ("batches", "x")])
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"local: {key} = "):
        Local(**{key: value})
    with pytest.raises(ConfigError, match=f"global: {key} = "):
        Global(**{key: value})
