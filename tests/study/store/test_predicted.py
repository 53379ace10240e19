from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.client.objective import objective_of
from idiolect.data import from_arrays
from idiolect.data.sets.synthetic import synthetic_population
from idiolect.study.store import predicted
from idiolect.study.store.predicted import is_recorded, predicted_key, predicted_of, record_predicted
from idiolect.study.store.store import RunRow, Store
from tests.engine import experiment, run


class Line(eqx.Module):
    """Outputs w x; of a regression one number."""

    w: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.w @ x


def data_of(labels, task):
    rng = np.random.default_rng(0)
    parts = {f"c{i}": (rng.normal(size=(len(y), 2)).astype("f4"), np.asarray(y)) for i, y in enumerate(labels)}
    return from_arrays(parts, task=task, test=0.5)


def stacked(model, *weights):
    params = [eqx.filter(eqx.tree_at(lambda m: m.w, model, jnp.asarray(w)), eqx.is_inexact_array) for w in weights]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *params)


def test_a_confusion_matrix_is_that_of_each_clients_own_model():
    data = data_of([np.arange(90) % 3, np.arange(30) % 3], "classification")
    one, other = np.random.default_rng(1).normal(size=(2, 3, 2)).astype("f4")
    objective = objective_of(Line(jnp.asarray(one)), "classification")
    found = predicted_of(objective, stacked(objective.static, one, other), data, np.array([0, 1]))
    for client, w in enumerate((one, other)):
        x, y = data.test.client(client)
        expected = np.zeros((3, 3), int)
        np.add.at(expected, (y, (x @ w.T).argmax(axis=1)), 1)
        assert found[client] == expected.tolist()
    (alone,) = predicted_of(objective, stacked(objective.static, other), data, np.array([1]))
    assert alone == found[1]


def test_residuals_are_in_the_units_of_the_labels(monkeypatch):
    labels = [1000.0 + 100 * np.arange(40), 500.0 + np.arange(20)]
    data = data_of(labels, "regression")
    w = np.array([[0.5, -0.25]], "f4")
    objective = objective_of(Line(jnp.asarray(w)), "regression")
    models = stacked(objective.static, w, w)
    found = predicted_of(objective, models, data, np.array([0, 1]))
    x, y = data.test.client(0)
    np.testing.assert_allclose(found[0], ((x @ w.T)[:, 0] - y) * data.label_scale, rtol=1e-4)
    monkeypatch.setattr(predicted, "MOST_RESIDUALS", 3)
    few = predicted_of(objective, models, data, np.array([0, 1]))
    assert few[0] == [found[0][0], found[0][round((len(y) - 1) / 2)], found[0][-1]]


@pytest.mark.parametrize("limit", ["MOST_CLASSES", "MOST_COUNTS", "MOST_SAMPLES"])
def test_large_data_are_left_out(limit, monkeypatch):
    data = data_of([np.arange(30) % 3, np.arange(30) % 3], "classification")
    assert is_recorded(data, 2)
    monkeypatch.setattr(predicted, limit, 2)
    assert not is_recorded(data, 2)


def test_the_limits_are_those_of_what_is_recorded(monkeypatch):
    """Of 2 clients with 3 classes: 2 x 3 x 3 counts; a regression has residuals only, however many labels."""
    data = data_of([np.arange(30) % 3, np.arange(30) % 3], "classification")
    for limit, least in (("MOST_CLASSES", 3), ("MOST_COUNTS", 18), ("MOST_SAMPLES", data.test.count)):
        with monkeypatch.context() as patch:
            patch.setattr(predicted, limit, least)
            assert is_recorded(data, 2)
            patch.setattr(predicted, limit, least - 1)
            assert not is_recorded(data, 2)
    monkeypatch.setattr(predicted, "MOST_COUNTS", 0)
    assert is_recorded(data_of([np.arange(30.0), np.arange(30.0)], "regression"), 2)


def test_data_without_common_stored_labels_are_left_out(monkeypatch):
    data = data_of([np.arange(30) % 3, np.arange(30) % 3], "classification")
    empty = replace(data.test, x=data.test.x[:0], y=data.test.y[:0], offsets=np.zeros(3, np.int64))
    assert not is_recorded(replace(data, test=empty), 2)
    own = {name: replace(data.split(name), outputs=np.array([3, 3])) for name in ("train", "validation", "test")}
    assert not is_recorded(replace(data, **own), 2)
    assert not is_recorded(synthetic_population(clients=2), 2)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    assert not is_recorded(data, 2)


def test_the_first_seed_that_is_saved_is_recorded(tmp_path):
    """Under the names of its cell and its method's label; nothing is recorded of a run without models."""
    store = Store(tmp_path)
    row = RunRow("id", "cell", "mine", "fedavg", 3, {}, "c", "d", {}, "done", 9, 0.0, 0.0, "")
    record_predicted(store, row, {})
    assert store.fact("predicted cell/mine") is None
    record_predicted(store, row, {"global": [[[1]]]})
    record_predicted(store, replace(row, seed=4), {"global": [[[2]]]})
    assert store.fact("predicted cell/mine") == {"seed": 3, "models": {"global": [[[1]]]}}


def test_a_run_that_saves_models_records_what_they_predict(tmp_path):
    results = run(experiment(seeds=2), tmp_path)
    for row in results.started():
        fact = results.store.fact(predicted_key("cell", row.label))
        assert fact["seed"] == 0
        if row.seed:
            continue
        for name, matrices in fact["models"].items():
            scores = results.store.scores(row.id, row.round, name, "test")
            right = [np.trace(matrix) / max(np.sum(matrix), 1) for matrix in matrices]
            np.testing.assert_allclose(right, scores.values["accuracy"], atol=1e-6)
            assert [int(np.sum(matrix)) for matrix in matrices] == scores.count.tolist()


class Picky(Line):
    """The same, without an answer where the first feature is negative."""

    def usable(self, x: jax.Array) -> jax.Array:
        return (x[0] >= 0).astype(jnp.float32)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_samples_without_an_answer_are_left_out(task):
    labels = [np.arange(40) % 2, np.arange(20) % 2]
    data = data_of(labels if task == "classification" else [10.0 * y for y in labels], task)
    w = np.array([[1.0, -2.0], [0.5, 1.0]] if task == "classification" else [[0.5, -0.25]], "f4")
    objective = objective_of(Picky(jnp.asarray(w)), task)
    found = predicted_of(objective, stacked(objective.static, w, w), data, np.array([0, 1]))
    for client in (0, 1):
        x, y = data.test.client(client)
        answered = x[:, 0] >= 0
        assert 0 < answered.sum() < len(y)
        outputs = x[answered] @ w.T
        if task == "classification":
            expected = np.zeros((2, 2), int)
            np.add.at(expected, (y[answered], outputs.argmax(axis=1)), 1)
            assert found[client] == expected.tolist()
        else:
            np.testing.assert_allclose(found[client], (outputs[:, 0] - y[answered]) * data.label_scale, rtol=1e-4)
