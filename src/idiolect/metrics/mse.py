"""Mean squared error."""

import numpy as np
from jaxtyping import Array, Float, Int

from idiolect.metrics.base import OfSums, Quotient


class MSE(OfSums):
    """Mean squared error.

        (1 / n) sum_i (f(x_i) - y_i)^2

    Over all clients, every sample counts once. scikit-learn: `mean_squared_error`.
    """

    name, column, task, higher = "mse", "mse", "regression", False
    degree = 2
    is_mean = True

    def sample(self, outputs: Float[Array, "..."], label: Float[Array, ""]) -> Float[Array, ""]:
        """The squared error."""
        return (outputs.reshape(()) - label) ** 2

    def finish(self, sums: Float[np.ndarray, "n"], count: Int[np.ndarray, "n"]) -> Quotient:
        """Squared errors / samples."""
        return sums, count
