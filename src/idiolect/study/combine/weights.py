"""The weights of a combination, from losses of validation rows."""

import numpy as np
from jaxtyping import Float, Int

from idiolect.study.advice.blend import likelihoods, weights
from idiolect.study.advice.policies import portfolio
from idiolect.study.combine.combined import Kind


def weights_of(
    kind: Kind, losses: Float[np.ndarray, "methods n"], owners: Int[np.ndarray, "n"], clients: int, classes: bool
) -> tuple[Float[np.ndarray, "clients methods"], Float[np.ndarray, "methods"]]:
    """Each client's weights, and those of clients without rows; they sum to 1.

    losses: each method's log-losses (classes) or squared errors of the validation rows; owners: the rows' clients.
    """
    if kind == "portfolio":
        chosen = np.eye(len(losses))[portfolio(clients + 1)(losses, owners)]  # the last one has no rows
        return chosen[:-1], chosen[-1]
    found = weights(likelihoods(losses, classes), owners, clients)
    return found, found.mean(axis=0)
