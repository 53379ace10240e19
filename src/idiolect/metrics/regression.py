"""Mean absolute error, (root) mean squared error and R2: metrics of a regression."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from idiolect.metrics.base import OfSamples, OfSums, Quotient, segment_sum


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
