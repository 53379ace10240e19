"""Log-loss."""

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from idiolect.metrics.base import OfSums, Quotient


class LogLoss(OfSums):
    """Log-loss (cross-entropy): the mean of minus the logarithm of the label's probability.

        -(1 / n) sum_i log p_i(y_i),   p_i = softmax(z_i)

    Whatever loss the model was trained with. scikit-learn: `log_loss`.
    """

    name, column, task, higher = "log-loss", "log-loss", "classification", False
    is_mean = True

    def sample(self, outputs: Float[Array, "classes"], label: Int[Array, ""]) -> Float[Array, ""]:
        """-log p(label)."""
        return -jax.nn.log_softmax(outputs)[label]

    def finish(self, sums: Float[np.ndarray, "n"], count: Int[np.ndarray, "n"]) -> Quotient:
        """Losses / samples."""
        return sums, count
