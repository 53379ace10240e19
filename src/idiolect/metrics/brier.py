"""The Brier score."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from idiolect.core.losses import lowest
from idiolect.metrics.base import OfSums, Quotient


class Brier(OfSums):
    """Brier score: the mean squared distance between the probabilities and the label.

        (1 / n) sum_i sum_c (p_i(c) - [y_i = c])^2,   p_i = softmax(z_i)

    With two classes half of that, so that it is that of one of them. Source: Brier 1950, Verification of forecasts
    expressed in terms of probability. scikit-learn: `brier_score_loss`.
    """

    name, column, task, higher = "brier", "Brier score", "classification", False
    is_mean = True

    def sample(self, outputs: Float[Array, "classes"], label: Int[Array, ""]) -> Float[Array, ""]:
        """The squared distance."""
        own = jnp.sum(outputs > lowest(outputs))  # the classes that the client has
        distance = jnp.sum((jax.nn.softmax(outputs) - (jnp.arange(outputs.shape[-1]) == label)) ** 2)
        return jnp.where(own == 2, distance / 2, distance)

    def finish(self, sums: Float[np.ndarray, "n"], count: Int[np.ndarray, "n"]) -> Quotient:
        """Squared distances / samples."""
        return sums, count
