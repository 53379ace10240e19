"""The portfolio: each client keeps the model that its own validation rows prefer."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from idiolect.study.advice.scored import Candidate, mixed

NAME = "portfolio"


def preferred(losses: Float[np.ndarray, "models n"], shared: int) -> int:
    """The model that a client's validation rows prefer; the shared one if it is within one standard error of it.

    losses: of each model on each of the client's rows. The error is that of the paired difference to the best,
    std / sqrt(n); with fewer than two rows nothing is known of it, and the shared model stays.
    The rule is Breiman's: Breiman, Friedman, Olshen, Stone, "Classification and Regression Trees", 1984, 3.4.3.
    """
    rows = losses.shape[1]
    if rows < 2:
        return shared
    best = int(losses.mean(axis=1).argmin())
    difference = losses[shared] - losses[best]
    error = difference.std(ddof=1) / np.sqrt(rows)
    return shared if difference.mean() <= error else best


def portfolio(
    candidates: Sequence[Candidate], owners: Sequence[Int[np.ndarray, "_"]], clients: int
) -> tuple[Candidate, list[Int[np.ndarray, "clients"]]]:
    """The portfolio of these candidates, the first shared one among them, and its choices in each division."""
    shared = next(i for i, one in enumerate(candidates) if one.kind == "shared")
    choices: list[Int[np.ndarray, clients]] = []
    for draw in range(len(candidates[0].test)):
        losses = np.stack([one.validation[draw] for one in candidates])
        choices.append(np.asarray([preferred(losses[:, owners[0] == i], shared) for i in range(clients)]))
    return mixed(NAME, "portfolio", choices, candidates, owners), choices
