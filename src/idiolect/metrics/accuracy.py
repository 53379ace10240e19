"""Accuracy."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from idiolect.metrics.base import OfSums, Quotient


class Accuracy(OfSums):
    """Accuracy: the share of samples whose label has the largest output.

        (1 / n) sum_i [argmax_c z_i(c) = y_i]

    Over all clients, every sample counts once. scikit-learn: `accuracy_score`.
    """

    name, column, task, higher, percent = "accuracy", "accuracy", "classification", True, True
    is_mean = True
    steps = "samples"

    def sample(self, outputs: Float[Array, "classes"], label: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether the prediction is right."""
        return jnp.argmax(outputs) == label

    def finish(self, sums: Int[np.ndarray, "n"], count: Int[np.ndarray, "n"]) -> Quotient:
        """Right predictions / samples."""
        return sums, count
