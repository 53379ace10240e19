"""The coefficient of determination."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from idiolect.metrics.base import OfSamples, Quotient
from idiolect.metrics.segments import segment_sum, spread


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
        values: tuple[Float[Array, "tiles rows"], Float[Array, "tiles rows"]],
        keep: Bool[Array, "tiles rows"],
        owner: Int[Array, "tiles"],
        clients: int,
    ) -> Quotient:
        """The explained / the labels' sum of squares around their mean, which is found first: no cancellation."""
        label, error = values
        count = segment_sum(keep.astype(jnp.int32), keep, owner, clients)
        mean = segment_sum(label, keep, owner, clients) / jnp.maximum(count, 1)
        apart = label - spread(mean, owner)
        rest = segment_sum(apart, keep, owner, clients) / jnp.maximum(count, 1)  # what rounding has left in the mean
        total = segment_sum((apart - spread(rest, owner)) ** 2, keep, owner, clients)
        return total - segment_sum(error**2, keep, owner, clients), total
