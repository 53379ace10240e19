"""Mean absolute error."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from idiolect.metrics.base import OfSums, Quotient


class MAE(OfSums):
    """Mean absolute error, in the units of the label.

        (1 / n) sum_i |f(x_i) - y_i|

    Over all clients, every sample counts once. scikit-learn: `mean_absolute_error`.
    """

    name, column, task, higher = "mae", "MAE", "regression", False
    degree = 1
    is_mean = True

    def sample(self, outputs: Float[Array, "..."], label: Float[Array, ""]) -> Float[Array, ""]:
        """The absolute error."""
        return jnp.abs(outputs.reshape(()) - label)

    def finish(self, sums: Float[np.ndarray, "n"], count: Int[np.ndarray, "n"]) -> Quotient:
        """Absolute errors / samples."""
        return sums, count
