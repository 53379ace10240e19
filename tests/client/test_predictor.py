"""Predictors beside parameters, in an objective; and what is shared."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from idiolect.client.objective import Batch, objective_of
from idiolect.client.predictor import Predictor, Shared, unshared
from tests.federations import classification


class Twice(Predictor):
    """The module's outputs, times two."""

    params: Any

    def bound(self, module):
        return Doubled(module(self.params))


class Doubled(eqx.Module):
    model: Any

    def __call__(self, x):
        return 2 * self.model(x)


class Positive(Predictor):
    """Answers only samples whose first feature is positive."""

    params: Any

    def bound(self, module):
        return Half(module(self.params))


class Half(eqx.Module):
    model: Any

    def __call__(self, x):
        return self.model(x)

    def usable(self, x):
        return (x[0] > 0).astype(float)


def batch():
    problem = classification((9,))
    x, y = problem.data.train.client(0)
    return problem, Batch(jnp.asarray(x), jnp.asarray(y), jnp.ones(9))


def test_a_predictor_predicts_in_its_own_way_and_parameters_as_the_module_does():
    problem, given = batch()
    objective, params = problem.objective, problem.params
    plain = objective.outputs(params, given.x)
    np.testing.assert_allclose(objective.outputs(Twice(params), given.x), 2 * plain, rtol=1e-6)
    np.testing.assert_allclose(objective.outputs(Twice(Twice(params)), given.x), 4 * plain, rtol=1e-6)
    np.testing.assert_allclose(objective.model(params)(given.x[0]), params(given.x[0]), rtol=1e-6)
    log = jax.nn.log_softmax(2 * np.asarray(plain, float))
    scores = objective.scores(Twice(params), given)
    np.testing.assert_allclose(scores.loss, -log[np.arange(9), np.asarray(given.y)].sum(), rtol=1e-5)


def test_a_predictor_that_cannot_answer_a_sample_is_not_judged_by_it():
    problem, given = batch()
    positive = np.asarray(given.x)[:, 0] > 0
    assert 0 < positive.sum() < 9
    objective = problem.objective
    assert not objective.selective
    np.testing.assert_array_equal(objective.answered(Positive(problem.params), given).weight, positive)
    np.testing.assert_array_equal(objective.answered(Twice(problem.params), given).weight, 1)
    assert int(objective.scores(Positive(problem.params), given).count) == positive.sum()


def test_a_predictor_decides_for_itself_on_a_module_that_is_selective():
    """The module's own word on a sample counts for its parameters alone."""
    problem, given = batch()
    module = Half(problem.params)
    objective = objective_of(module, "classification")
    params = eqx.filter(module, eqx.is_inexact_array)
    positive = np.asarray(given.x)[:, 0] > 0
    np.testing.assert_array_equal(objective.answered(params, given).weight, positive)
    np.testing.assert_array_equal(objective.answered(Twice(params), given).weight, 1)


def test_what_is_shared_is_the_same_model_without_the_word_on_it():
    models = {"a": Shared(jnp.ones(2)), "b": Shared({"c": jnp.zeros(3)}, jnp.asarray(4)), "d": jnp.arange(2)}
    plain = unshared(models)
    assert plain.keys() == models.keys()
    assert plain["a"] is models["a"].model
    assert plain["b"] is models["b"].model
    assert unshared(models["a"]) is models["a"].model
    np.testing.assert_array_equal(plain["d"], [0, 1])
