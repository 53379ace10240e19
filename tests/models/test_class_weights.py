"""Weights of classes: scikit-learn's "balanced", and a model that they move."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

import idiolect
from idiolect.core.errors import ConfigError
from idiolect.core.losses import Weighted, cross_entropy
from idiolect.data import from_arrays, number_own_labels
from idiolect.models.class_weights import loss_for

BALANCED = {"name": "mlr", "class_weights": "balanced"}


def lopsided(rows=100):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 2))
    y = (x[:, 0] + rng.normal(size=rows) > 1.6).astype(int)
    return from_arrays({"a": (x, y), "b": (x[::-1] + 0.01, y[::-1])})


def test_the_weights_are_scikit_learns():
    data = lopsided()
    loss = loss_for(BALANCED, data)
    assert isinstance(loss, Weighted)
    expected = compute_class_weight("balanced", classes=np.arange(2), y=data.train.y)
    np.testing.assert_allclose(loss.weights, expected, rtol=1e-12)
    outputs = jax.random.normal(jax.random.key(0), (2,))
    for label in (0, 1):
        one = jnp.asarray(label)
        assert loss(outputs, one) == pytest.approx(expected[label] * float(cross_entropy(outputs, one)), rel=1e-6)
    assert loss_for(BALANCED, data) == loss  # equal weights are one compiled program
    assert loss_for("mlr", data) is None


def test_a_rare_class_is_found():
    data = lopsided()
    found = {
        name: idiolect.run(data, model, "fedavg", rounds=60, metric="balanced-accuracy").scores("global").pooled
        for name, model in (("plain", {"name": "mlr"}), ("balanced", BALANCED))
    }
    assert found["balanced"]["balanced-accuracy"] > found["plain"]["balanced-accuracy"] + 0.1


def test_what_has_no_common_classes_is_refused():
    rng = np.random.default_rng(0)
    for data, model in (
        (from_arrays({"a": (rng.normal(size=(9, 2)), rng.normal(size=9))}), {**BALANCED, "name": "linear"}),
        (number_own_labels(lopsided()), BALANCED),
    ):
        with pytest.raises(ConfigError, match="needs classes that mean the same at all clients"):
            loss_for(model, data)
    with pytest.raises(ConfigError, match=r"model\.class_weights = 'balance'|unknown class weights"):
        loss_for({"name": "mlr", "class_weights": "balance"}, lopsided())
