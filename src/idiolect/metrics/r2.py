"""The coefficient of determination."""

import numpy as np
from jaxtyping import Array, Float, Int

from idiolect.metrics.base import OfSamples, Quotient
from idiolect.metrics.segments import segment_sum


class R2(OfSamples):
    """R2, the coefficient of determination: the share of the labels' variance that the model explains.

        1 - sum_i (y_i - f(x_i))^2 / sum_i (y_i - mean(y))^2

    mean(y): of the client's labels; over all clients that of all labels, so that knowing a client's mean counts.
    Without two different labels there is no value. scikit-learn: `r2_score`.
    """

    name, column, task, higher = "r2", "R2", "regression", True

    def sample(self, outputs: Float[Array, "..."], label: Float[Array, ""]) -> tuple[Array, Array]:
        """The label, and the model's error."""
        return label, outputs.reshape(()) - label

    def finish(
        self,
        values: tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]],
        owner: Int[np.ndarray, "n"],
        clients: int,
    ) -> Quotient:
        """The explained / the labels' sum of squares around their mean, which is found first: no cancellation."""
        label, error = values
        count = np.maximum(np.bincount(owner, minlength=clients), 1)
        apart = label - (segment_sum(label, owner, clients) / count)[owner]
        apart -= (segment_sum(apart, owner, clients) / count)[owner]  # what rounding has left in the mean
        total = segment_sum(apart**2, owner, clients)
        return total - segment_sum(error**2, owner, clients), total
