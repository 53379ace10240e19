"""The loss of a specification for a federation: by its classes' weights where the specification asks for them."""

import numpy as np

from idiolect.core.errors import require
from idiolect.core.losses import SampleLoss, Weighted, cross_entropy
from idiolect.data.federated import FederatedData
from idiolect.models.registry import complete_spec, loss_of
from idiolect.models.spec import Spec


def loss_for(spec: Spec | str, data: FederatedData) -> SampleLoss | None:
    """As `loss_of`, and with class_weights = "balanced" weighted by w_k = n / (K n_k).

    n_k: training samples of class k at all clients, n: of all classes, K: the number of classes. (scikit-learn's
    "balanced".) Raises `ConfigError` for a regression and where clients number their own classes.
    """
    loss = loss_of(spec)
    if complete_spec(spec)["class_weights"] == "none":
        return loss
    alike = data.task == "classification" and not data.own_labels
    require(alike, "model.class_weights = 'balanced' needs classes that mean the same at all clients")
    count = np.bincount(data.stored("train").y, minlength=data.num_outputs)
    weights = np.where(count > 0, count.sum() / (len(count) * np.maximum(count, 1)), 0.0)
    return Weighted(loss or cross_entropy, tuple(weights.tolist()))
