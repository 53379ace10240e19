import jax.numpy as jnp
import numpy as np
import pytest

from idiolect import graphs
from idiolect.algorithms.mocha import Mocha, Relation, Tasks
from idiolect.data import from_arrays, load
from idiolect.data.federated import FederatedData, Split
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import experiment_of
from idiolect.study.store import recorded
from idiolect.study.store.recorded import (
    census,
    clients_key,
    constant_scores,
    graph_key,
    graph_of,
    record_audit,
    record_clients,
    related,
    traffic_key,
)
from idiolect.study.store.store import Store


def two_clients(labels, task="classification", classes=("no", "yes")):
    y = np.asarray(labels, np.int32 if task == "classification" else np.float32)
    train = Split(np.zeros((4, 1), np.float32), y, np.array([0, 1, 4]))
    empty = Split(np.zeros((0, 1), np.float32), y[:0], np.array([0, 0, 0]))
    return FederatedData("toy", train, empty, empty, ("a", "b"), task, classes)


def test_labels_of_the_training_samples_are_counted():
    found = census(two_clients([1, 0, 1, 1]), np.array([0, 1]))
    assert found == {"names": ["a", "b"], "train": [1, 3], "validation": [0, 0], "test": [0, 0],
                     "classes": ["no", "yes"], "counts": [[0, 1], [1, 2]]}  # fmt: skip
    assert census(two_clients([1, 0, 1, 1]), np.array([1]))["counts"] == [[1, 2]]


def test_numbers_have_quantiles():
    found = census(two_clients([1.0, 0.0, 2.0, 4.0], "regression", ()), np.array([0, 1]))
    assert found["quantiles"] == [[1.0] * 5, [0.0, 1.0, 2.0, 3.0, 4.0]]
    assert "counts" not in found


def test_a_data_set_is_described_once(tmp_path, monkeypatch):
    store, data = Store(tmp_path), two_clients([1, 0, 1, 1])
    record_clients(store, data, None)
    record_audit(store, data)
    key = clients_key(data.fingerprint, None)
    assert store.fact(key)["train"] == [1, 3]
    assert store.fact(f"audit {data.fingerprint}")
    store.set_fact(key, {"kept": True})
    record_clients(store, data, None)
    record_audit(store, data)
    assert store.fact(key) == {"kept": True}
    monkeypatch.setattr(recorded, "MOST_CLIENTS", 0)
    record_clients(store, data, 1)
    assert store.fact(clients_key(data.fingerprint, 1)) is None


def test_a_graphs_edges_and_spectrum(monkeypatch):
    found = graph_of(graphs.ring(4))
    assert [edge[:2] for edge in found["edges"]] == [[0, 1], [0, 3], [1, 2], [2, 3]]
    assert found["eigenvalues"] == pytest.approx([0, 2, 2, 4])
    assert (found["clients"], found["count"], found["learned"], found["hub"]) == (4, 4, False, False)
    monkeypatch.setattr(recorded, "MOST_EDGES", 1)
    few = related(np.array([[1, 0.1, -0.9], [0.1, 1, 0.2], [-0.9, 0.2, 1]]))
    assert (few["edges"], few["count"], few["learned"]) == ([[0, 2, -0.9]], 3, True)


def test_learned_relations_are_correlations():
    omega = jnp.array([[4.0, 1.0], [1.0, 1.0]])
    zero, two = jnp.zeros(()), jnp.zeros(2)
    relation = Relation(omega, omega, zero)
    tasks = Tasks(two, two, relation, two, jnp.asarray(0), zero, zero, jnp.asarray(False))
    assert Mocha(relationship="learned").relations(tasks).tolist() == [[1.0, 0.5], [0.5, 1.0]]
    assert Mocha().relations(tasks) is None


def test_what_a_method_sends_and_its_graph(tmp_path):
    base = {"id": "c", "data": {"name": "synthetic", "clients": 3, "max_size": 20}, "model": "mlr"}
    exp = experiment_of(
        {"name": "toy", "cells": [{**base, "methods": [{"name": "fedu"}, {"name": "global"}]}]}, "toy"
    )
    cell, bench, store = exp.cells[0], Workbench(), Store(tmp_path)
    data = bench.load(cell)
    for method in cell.methods:
        simulation = bench.simulation(cell, method, bench.problem(cell, data))
        recorded.record_method(store, bench.row(cell, method, data, 0), simulation)
    assert store.fact(traffic_key("c", "fedu")) == [2440, 2440]
    assert store.fact(graph_key("c", "fedu"))["count"] == 3
    assert store.fact(traffic_key("c", "global")) is None


def test_the_most_common_label_of_all_training_samples():
    x = np.zeros((10, 1), np.float32)
    data = from_arrays({"a": (x, np.array([0] * 8 + [1] * 2)), "b": (x, np.array([1] * 5 + [2] * 5))}, test=0.2)
    labels = data.stored("train").y
    most = max((labels == k).mean() for k in range(3))
    assert constant_scores(data) == {"accuracy": pytest.approx(most)}


def test_the_mean_of_numbers_in_the_users_units():
    rng = np.random.default_rng(0)
    y = 1000 * rng.normal(size=40)
    data = from_arrays({"a": (rng.normal(size=(40, 2)).astype("f4"), y.astype("f4"))}, test=0.25)
    found = constant_scores(data)["mse"]
    labels = data.stored("train").y.astype(np.float64) * data.label_scale
    assert found == pytest.approx(np.var(labels), rel=1e-6)
    assert 1e5 < found < 1e7


def test_samples_that_are_made_when_used_have_none():
    assert constant_scores(load({"name": "synthetic-population", "clients": 10})) == {}
