"""What a model that looks at no feature scores on the training samples: the floor of any that has learnt."""

import numpy as np

from idiolect.data.federated import FederatedData, Split


def constant_scores(data: FederatedData) -> dict[str, float]:
    """Metric -> score of one answer for all training samples: the most common label, or the labels' mean.

    Empty where that has no meaning: samples that are made when they are used, clients that number their own labels.
    """
    train = data.train
    if not isinstance(train, Split) or train.count == 0 or data.own_labels:
        return {}
    if data.task == "regression":
        return {"mse": float(np.var(train.y, dtype=np.float64)) * data.label_scale**2}
    return {"accuracy": float(np.bincount(train.y).max() / train.count)}
