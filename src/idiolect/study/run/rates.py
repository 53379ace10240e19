"""Learning rates that fit the data: multiples of 1 / L, L the largest curvature of the clients' losses."""

import numpy as np

from idiolect.data.federated import FederatedData


def safe_rate(data: FederatedData, linear: bool) -> float:
    """A learning rate with which no client diverges: 1 / L, L the largest eigenvalue of any client's z z' mean.

    z: a sample's features and 1, for the bias; L bounds the curvature of a linear model's squared error, and of its
    cross-entropy too. For other models 0.1, which is only a guess.
    """
    if not linear:
        return 0.1
    train = data.stored("train")
    largest = 1.0
    for client in range(data.num_clients):
        x = train.client(client)[0].reshape(int(train.sizes[client]), -1).astype(np.float64)
        z = np.concatenate([x, np.ones((len(x), 1))], axis=1)
        largest = max(largest, float(np.linalg.norm(z, 2)) ** 2 / len(z))
    return 1 / largest
