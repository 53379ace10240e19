"""Root mean squared error."""

import numpy as np
from jaxtyping import Array, Float, Int

from idiolect.metrics.base import OfSums, Quotient


class RMSE(OfSums):
    """Root mean squared error, in the units of the label.

        sqrt((1 / n) sum_i (f(x_i) - y_i)^2)

    Over all clients the root of the mean over all samples. scikit-learn: `root_mean_squared_error`.
    """

    name, column, task, higher = "rmse", "RMSE", "regression", False
    degree = 1

    def sample(self, outputs: Float[Array, "..."], label: Float[Array, ""]) -> Float[Array, ""]:
        """The squared error."""
        return (outputs.reshape(()) - label) ** 2

    def finish(self, sums: Float[np.ndarray, "n"], count: Int[np.ndarray, "n"]) -> Quotient:
        """The root of squared errors / samples."""
        return np.sqrt(sums / np.maximum(count, 1)), np.minimum(count, 1)
