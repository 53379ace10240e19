import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.client.objective import Batch, objective_of
from idiolect.core.losses import cross_entropy, half_squared_error
from idiolect.metrics.base import OfSamples
from idiolect.metrics.registry import measured
from tests.federations import classification
from tests.modalities import FLAT, close, problem, without

LOGITS = np.array([[2.0, -1.0, 0.5], [0.0, 0.0, 0.0], [-3.0, 1.0, 1.5]])


class Affine(eqx.Module):
    weight: jax.Array
    bias: jax.Array

    def __call__(self, x):
        return self.weight @ x + self.bias


def loss_of(objective, model, batch):
    return eqx.filter_jit(objective.loss)(model, batch)


def scores_of(objective, model, batch, metrics):
    return eqx.filter_jit(objective.scores)(model, batch, metrics)


def log_softmax(z):
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def test_cross_entropy_is_minus_the_log_probability():
    for label in range(3):
        got = jax.jit(cross_entropy)(jnp.asarray(LOGITS[0], jnp.float32), jnp.asarray(label))
        np.testing.assert_allclose(got, -log_softmax(LOGITS[0])[label], rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_half_squared_error_takes_a_scalar_of_either_shape(shape):
    assert float(half_squared_error(jnp.full(shape, 3.0), jnp.asarray(1.0))) == 2.0


def affine(task, l2=0.0):
    rng = np.random.default_rng(0)
    model = Affine(jnp.asarray(rng.normal(size=(3, 2)), jnp.float32), jnp.asarray(rng.normal(size=3), jnp.float32))
    return model, objective_of(model, task, l2=l2)


def test_loss_is_the_weighted_mean_plus_l2_on_every_parameter():
    model, objective = affine("classification", l2=0.3)
    x = np.random.default_rng(1).normal(size=(4, 2)).astype(np.float32)
    y, weight = np.array([0, 2, 1, 1], np.int32), np.array([1, 1, 0, 1], np.float32)
    losses = -log_softmax(x @ np.asarray(model.weight).T + np.asarray(model.bias))[np.arange(4), y]
    penalty = 0.15 * (np.sum(np.asarray(model.weight) ** 2) + np.sum(np.asarray(model.bias) ** 2))
    got = loss_of(objective, model, Batch(jnp.asarray(x), jnp.asarray(y), jnp.asarray(weight)))
    np.testing.assert_allclose(got, losses[[0, 1, 3]].mean() + penalty, rtol=1e-6)


def test_zero_l2_and_a_traced_zero_agree():
    problem = classification()
    batch = problem.client(2).draw(jax.random.key(0), 8)
    traced = eqx.tree_at(lambda o: o.l2, problem.objective, jnp.asarray(0.0))
    np.testing.assert_allclose(
        loss_of(problem.objective, problem.params, batch), loss_of(traced, problem.params, batch), rtol=1e-7
    )


CLASSES, NUMBERS = measured("classification"), measured("regression")


class Labels(OfSamples):
    """A metric that keeps its samples."""

    name = "labels"

    def sample(self, outputs, label):
        return label, outputs[0]

    def finish(self, values, keep, owner, clients):
        raise NotImplementedError


def test_scores_of_a_classifier_sum_over_real_rows():
    model, objective = affine("classification")
    x, y = jnp.eye(3, 2), jnp.array([0, 1, 2], jnp.int32)
    logits = np.asarray(x) @ np.asarray(model.weight).T + np.asarray(model.bias)
    scores = scores_of(objective, model, Batch(x, y, jnp.array([1.0, 0.0, 1.0])), (*CLASSES, Labels()))
    np.testing.assert_allclose(scores.loss, -log_softmax(logits)[[0, 2], [0, 2]].sum(), rtol=1e-6)
    assert int(scores.sums["accuracy"]) == (logits.argmax(axis=1) == np.arange(3))[[0, 2]].sum()
    assert (int(scores.count), scores.count.dtype) == (2, jnp.int32)
    predicted, actual = logits.argmax(axis=1)[[0, 2]], np.array([0, 2])
    counts = [np.bincount(part, minlength=3) for part in (actual[predicted == actual], predicted, actual)]
    np.testing.assert_array_equal(scores.sums["macro-f1"], counts)
    assert scores.sums["macro-f1"].dtype == jnp.int32
    np.testing.assert_array_equal(scores.keep, [True, False, True])
    labels, first = scores.samples["labels"]
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_allclose(first, logits[:, 0], rtol=1e-6)
    assert (sorted(scores.sums), sorted(scores.samples)) == (["accuracy", "macro-f1"], ["labels"])


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_padded_row_may_hold_anything(task):
    model, objective = affine(task)
    if task == "regression":
        model = Affine(model.weight[:1], model.bias[:1])
    labels = jnp.array([0, 0], jnp.int32 if task == "classification" else jnp.float32)
    batch = Batch(jnp.array([[1.0, 2.0], [jnp.inf, 0.0]]), labels, jnp.array([1.0, 0.0]))
    scores = scores_of(objective, model, batch, measured(task))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((scores.loss, scores.sums)))
    assert int(scores.count) == 1


def test_scores_of_a_regression_are_squared_errors():
    model = Affine(jnp.array([[2.0]]), jnp.array([1.0]))
    objective = objective_of(model, "regression")
    batch = Batch(jnp.array([[1.0], [2.0]]), jnp.array([0.0, 7.0]), jnp.ones(2))
    scores = scores_of(objective, model, batch, NUMBERS)
    assert (float(scores.loss), float(scores.sums["mse"])) == (6.5, 13.0)


def test_the_users_own_loss_replaces_the_default():
    model = Affine(jnp.array([[2.0]]), jnp.array([1.0]))
    objective = objective_of(model, "regression", loss=lambda output, target: jnp.abs(output[0] - target))
    batch = Batch(jnp.array([[1.0]]), jnp.array([7.0]), jnp.ones(1))
    assert float(loss_of(objective, model, batch)) == 4.0


def test_outputs_beyond_a_clients_classes_count_for_nothing():
    """K_i of C outputs: loss, gradient and predictions are those of a head with K_i rows."""
    model, objective = affine("classification")
    rng = np.random.default_rng(1)
    x, y = jnp.asarray(rng.normal(size=(6, 2)), jnp.float32), jnp.array([0, 1, 1, 0, 1, 0])
    narrow = Affine(model.weight[:2], model.bias[:2])
    model = Affine(model.weight.at[2].add(5.0), model.bias.at[2].set(100.0))  # the row that must not be heard
    own, whole = Batch(x, y, jnp.ones(6), jnp.asarray(2)), Batch(x, y, jnp.ones(6))
    loss, slope = jax.jit(jax.value_and_grad(objective.loss))(model, own)
    expected, narrow_slope = jax.jit(jax.value_and_grad(objective_of(narrow, "classification").loss))(narrow, whole)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    np.testing.assert_allclose(slope.weight[:2], narrow_slope.weight, rtol=1e-6)
    np.testing.assert_array_equal(slope.weight[2], 0)
    scores = scores_of(objective, model, own, CLASSES)
    narrow_scores = scores_of(objective_of(narrow, "classification"), narrow, whole, CLASSES)
    assert int(scores.sums["accuracy"]) == int(narrow_scores.sums["accuracy"])
    assert int(scores_of(objective, model, whole, CLASSES).sums["accuracy"]) == 0
    np.testing.assert_array_equal(scores.sums["macro-f1"][:, :2], narrow_scores.sums["macro-f1"])
    np.testing.assert_array_equal(scores.sums["macro-f1"][:, 2], 0)


def test_samples_that_the_model_cannot_answer_count_for_nothing():
    """Loss, gradient, exact gradient and scores are those on the other samples alone."""
    given = problem(l2=0.1, **FLAT | {"modalities": ["acc"]})
    client, count = given.client(2), 12
    batch = client.take(jnp.arange(count))
    lost = batch.x.at[::3].set(without(batch.x[::3], "acc"))
    kept = jnp.asarray([i for i in range(count) if i % 3])
    few = batch._replace(x=batch.x[kept], y=batch.y[kept], weight=batch.weight[kept])
    some = batch._replace(x=lost)
    value, scores = jax.jit(jax.value_and_grad(given.objective.loss)), eqx.filter_jit(given.objective.scores)
    close(value(given.params, some), value(given.params, few))
    lacking, whole = scores(given.params, some, CLASSES), scores(given.params, few, CLASSES)
    close((lacking.loss, lacking.sums), (whole.loss, whole.sums))
    assert int(lacking.count) == len(kept)
    own = eqx.tree_at(lambda c: (c.x, c.y, c.start), client, (lost, batch.y, jnp.zeros_like(client.start)))
    exact = eqx.filter_jit(
        lambda c, params: (c.full_value_and_grad(params, tile=5), c.full_loss(params), c.answered(params))
    )
    found, loss, answered = exact(own, given.params)
    close(found, value(given.params, few))
    close(loss, found[0])
    assert float(answered) == len(kept)
