import numpy as np
import pytest

from idiolect.data import from_arrays, load
from idiolect.study.constant import constant_scores


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
