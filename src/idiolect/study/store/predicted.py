"""What a run's saved models predict for each client's test samples: which labels they take for which, how far off."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int, PyTree

from idiolect.client.objective import Objective
from idiolect.client.predictor import unshared
from idiolect.data.federated import FederatedData, GeneratedSplit
from idiolect.runtime.predict import outputs_of
from idiolect.study.store.store import RunRow, Store

MOST_CLASSES = 20
MOST_COUNTS = 500_000
"""Numbers in the confusion matrices of one model."""
MOST_SAMPLES = 50_000
MOST_RESIDUALS = 200
"""Residuals of one client; of more samples, as many evenly spaced ones."""


def predicted_key(cell: str, title: str) -> str:
    """The name of the fact that holds what a method's models predict."""
    return f"predicted {cell}/{title}"


def record_predicted(store: Store, run: RunRow, predicted: Mapping[str, list[Any]]) -> None:
    """Record what the named models of the first run that is saved predict; nothing if there is nothing."""
    key = predicted_key(run.cell, run.label)
    if predicted and store.fact(key) is None:
        store.set_fact(key, {"seed": run.seed, "models": dict(predicted)})


def is_recorded(data: FederatedData, clients: int) -> bool:
    """Whether the data are few enough, and their labels mean the same at every client."""
    test = data.test
    if isinstance(test, GeneratedSplit) or not test.count or test.count > MOST_SAMPLES or jax.process_count() > 1:
        return False
    if data.task == "regression":
        return True
    classes = len(data.classes)
    return not data.own_labels and classes <= MOST_CLASSES and clients * classes**2 <= MOST_COUNTS


def predicted_of(objective: Objective, models: PyTree, data: FederatedData, ids: Int[np.ndarray, "n"]) -> list[Any]:
    """Of each client: the confusion matrix of its test samples (rows: true class, columns: predicted), or residuals.

    models: of the clients `ids`, leaves (n, ...), or `Shared`. A residual is prediction - label, in the label's
    units. Samples for which a model has no answer are left out.
    """
    parts = [data.test.client(int(i)) for i in ids]
    owners = np.repeat(np.arange(len(ids)), [len(y) for _, y in parts])
    x, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    outputs, usable = outputs_of(objective, unshared(models), owners, x)
    answered = usable > 0
    owners, y, outputs = owners[answered], y[answered], outputs[answered]
    if data.task == "classification":
        found = np.zeros((len(ids), len(data.classes), len(data.classes)), np.int64)
        np.add.at(found, (owners, y, outputs.argmax(axis=-1)), 1)
        return found.tolist()
    residuals = (np.asarray(outputs, np.float64).reshape(len(y)) - y) * data.label_scale
    return [_some(residuals[owners == client]) for client in range(len(ids))]


def _some(residuals: Float[np.ndarray, "m"]) -> list[float]:
    if len(residuals) > MOST_RESIDUALS:
        residuals = residuals[np.linspace(0, len(residuals) - 1, MOST_RESIDUALS).round().astype(int)]
    return [float(f"{value:.5g}") for value in residuals]
