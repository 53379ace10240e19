"""A model on a federation's data: the user's own as it is, a specification built from the seed."""

import equinox as eqx
import jax
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.core.errors import ConfigError
from idiolect.core.losses import Weighted
from idiolect.core.random import model_key
from idiolect.models import build
from idiolect.study.spec.assemble import problem_of
from tests.federations import classification

SPEC = {"name": "mlp", "hidden": [3], "l2": 0.25}
DATA = classification().data


def equal(one, other):
    return all((a == b).all() for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def test_a_specification_is_initialised_from_the_seed_and_names_its_penalty_and_loss():
    problem = problem_of(DATA, SPEC, 3)
    assert equal(problem.params, eqx.filter(build(SPEC, (3,), 3, "classification", model_key(3)), eqx.is_array))
    assert not equal(problem.params, problem_of(DATA, SPEC, 4).params)
    assert (problem.l2, problem.objective.l2, problem.loss) == (0.25, 0.25, None)
    loss = problem_of(DATA, {"name": "mlr", "class_weights": "balanced"}).loss
    assert isinstance(loss, Weighted)


def test_shapes_are_those_of_the_parameters_and_nothing_is_drawn():
    shapes = problem_of(DATA, SPEC, shapes=True)
    assert all(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(shapes.params))
    expected = jax.tree.map(lambda leaf: leaf.shape, problem_of(DATA, SPEC).params)
    assert jax.tree.map(lambda leaf: leaf.shape, shapes.params) == expected
    assert shapes.objective.sample_loss is problem_of(DATA, SPEC).objective.sample_loss


def test_a_module_of_the_user_stays_as_it_is_without_a_penalty():
    module = eqx.nn.Linear(3, 3, key=jax.random.key(0))
    problem = problem_of(DATA, module, 7)
    assert problem.module is module
    assert (problem.l2, problem.loss) == (0.0, None)
    with pytest.raises(ConfigError, match="outputs"):
        problem_of(DATA, eqx.nn.Linear(3, 2, key=jax.random.key(0)))


def test_the_simulation_starts_from_the_model_with_its_objective_and_options():
    problem = problem_of(DATA, SPEC, 3)
    simulation = problem.simulation(FedAvg(), cohort=2, rounds=5)
    assert simulation.data is DATA
    assert equal(simulation.params, problem.params)
    assert simulation.objective.l2 == 0.25
    assert (simulation.sampling.size, simulation.rounds) == (2, 5)
    np.testing.assert_array_equal(simulation.init(0).shared.params.layers[0].weight, problem.module.layers[0].weight)
