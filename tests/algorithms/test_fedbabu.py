"""FedBABU: a head that never moves, a body that does, and fine-tuning written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.fedbabu import FedBABU
from idiolect.client.objective import objective_of
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.core.random import stream
from idiolect.models.dense import MLP
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.simulate import Simulation
from tests import parted
from tests.contract import is_the_same_however_executed, keeps_nothing
from tests.federations import flat, rows, run, start_with
from tests.parted import HEAD, SIZES, descend, slopes

CLIENTS = len(SIZES)
OPTIONS = {"head": HEAD, "head_init": "model", "rate": 0.3, "batch_size": 0}


def test_the_head_is_drawn_once_orthonormal_and_never_moves():
    data = parted.problem().data
    model = MLP(3, (4,), 3, key=jax.random.key(2))
    simulation = Simulation(
        data, objective_of(model, "classification"), model, FedBABU(rate=0.3, batch_size=4), cohort=2
    )
    state = simulation.init(0)
    before = jax.tree.map(np.array, state.shared)
    weight = before.head.layers[1].weight
    np.testing.assert_allclose(weight @ weight.T, np.eye(3), atol=1e-5)
    assert not before.head.layers[1].bias.any()
    assert not np.array_equal(simulation.init(1).shared.head.layers[1].weight, weight)
    after = simulation.advance(state, 3).shared
    np.testing.assert_array_equal(flat(after.head), flat(before.head))
    assert np.abs(flat(after.server.params) - flat(before.server.params)).max() > 0.01
    trained = Evaluator(simulation).client_params(simulation.advance(simulation.init(0), 3), ("global",))["global"]
    np.testing.assert_array_equal(np.asarray(trained.layers[1].weight), np.tile(weight, (CLIENTS, 1, 1)))


def test_the_head_of_pflegos_code_is_one_uniform_draw_made_orthonormal_with_its_bias():
    data = parted.problem().data
    model = MLP(3, (4,), 3, key=jax.random.key(2))
    objective = objective_of(model, "classification")
    state = Simulation(data, objective, model, FedBABU(head_init="uniform_orthogonal")).init(0)
    last = state.shared.head.layers[1]
    whole = np.column_stack([last.weight, last.bias])
    np.testing.assert_allclose(whole @ whole.T, np.eye(3), atol=1e-5)
    assert np.abs(last.bias).max() > 0.05
    assert state.private is None


def test_a_round_averages_bodies_trained_under_the_fixed_head():
    problem = parted.problem()
    state = run(problem.simulation(FedBABU(local_steps=3, **OPTIONS)))
    body, head = parted.start(problem)
    bodies = [body] * CLIENTS
    for i in range(CLIENTS):
        for _ in range(3):
            bodies[i] = descend(bodies[i], 0.3, slopes(problem, bodies[i], head, i)[0])
    mean = np.average([flat(b) for b in bodies], axis=0, weights=SIZES)
    np.testing.assert_allclose(flat(state.shared.server.params), mean, atol=1e-5)
    np.testing.assert_array_equal(flat(state.shared.head), flat(head))


def test_momentum_is_that_of_heavy_ball_steps_and_starts_anew_in_training_and_in_fine_tuning():
    problem = parted.problem()
    options = OPTIONS | {"local_steps": 3, "momentum": 0.8, "finetune": "body", "finetune_steps": 2}
    simulation = problem.simulation(FedBABU(**options))
    state = run(simulation)

    def heavy(body, head, i, steps):
        velocity = jax.tree.map(jnp.zeros_like, body)
        for _ in range(steps):
            velocity = jax.tree.map(lambda v, g: 0.8 * v + g, velocity, slopes(problem, body, head, i)[0])
            body = descend(body, 0.3, velocity)
        return body

    body, head = parted.start(problem)
    mean = parted.mean([heavy(body, head, i, 3) for i in range(CLIENTS)], SIZES)
    np.testing.assert_allclose(flat(state.shared.server.params), flat(mean), atol=1e-5)
    adapted = Evaluator(simulation).client_params(state, ("adapted",))["adapted"]
    expected = [flat(tree.merged(head, heavy(mean, head, i, 2))) for i in range(CLIENTS)]
    np.testing.assert_allclose(rows(adapted), expected, atol=1e-5)


@pytest.mark.parametrize("part", ["all", "head", "body"])
def test_the_adapted_model_is_fine_tuned_on_the_part_that_was_asked_for(part):
    """Three exact steps of the fine-tuning rate; `global` stays as it came, and training knows nothing of it."""
    problem = parted.problem()
    algorithm = FedBABU(finetune=part, finetune_steps=3, finetune_rate=0.2, **OPTIONS)
    simulation = problem.simulation(algorithm)
    models = Evaluator(simulation).client_params(simulation.init(0), ("adapted", "global"))
    np.testing.assert_array_equal(rows(models["global"]), np.tile(flat(problem.params), (CLIENTS, 1)))
    for i in range(CLIENTS):
        body, head = parted.start(problem)
        for _ in range(3):
            for_body, for_head = slopes(problem, body, head, i)
            body = body if part == "head" else descend(body, 0.2, for_body)
            head = head if part == "body" else descend(head, 0.2, for_head)
        np.testing.assert_allclose(rows(models["adapted"])[i], flat(tree.merged(head, body)), atol=1e-5)


def test_fine_tuning_by_epochs_takes_mini_batches_of_training_data():
    problem = parted.problem()
    algorithm = FedBABU(finetune_epochs=2, **OPTIONS | {"batch_size": 4})
    simulation = problem.simulation(algorithm)
    adapted = Evaluator(simulation).client_params(simulation.init(0), ("adapted",))["adapted"]
    client, key, w = problem.client(0), stream(jax.random.key(0), "local", 0, 0), problem.params
    step = jax.jit(lambda w, number: descend(w, 0.3, client.grad(w, client.batch(key, number, 4, "epoch"))))
    for number in range(6):
        w = step(w, number)
    np.testing.assert_allclose(rows(adapted)[0], flat(w), atol=1e-5)


def test_no_leaf_of_the_head_is_sent_and_nothing_is_kept():
    problem, algorithm = parted.problem(), FedBABU(**OPTIONS)
    shared = algorithm.init(start_with(problem.params), parted.KEY)
    paths, _, kept = parted.sent(algorithm, problem.client(0), shared, None)
    assert paths == [".first", ".bias"]
    assert kept is None
    view = algorithm.view(shared, jnp.asarray(0))
    np.testing.assert_array_equal(flat(view), flat(problem.params))


@pytest.mark.second
def test_execution_and_padding_change_nothing():
    """Quadratics in two leaves, of which `tail` is the head."""
    algorithm = FedBABU(head="tail", head_init="model", rate=0.1, local_steps=2, batch_size=2)
    is_the_same_however_executed(algorithm)
    keeps_nothing(algorithm)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rate", 0.0),
        ("finetune_rate", 0.0),
        ("finetune_steps", 0),
        ("finetune_epochs", -1),
        ("momentum", 1.0),
        ("finetune", "tail"),
        ("head_init", "ones"),
        ("local_steps", 0),
    ],
)
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"fedbabu: {key} = "):
        FedBABU(**{key: value})
