"""Log-loss, Brier score and expected calibration error: metrics of the predicted probabilities."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from idiolect.core.losses import lowest
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


BINS = 15


class ECE(OfSums):
    """Expected calibration error: how far the probability of what is predicted is from how often that is right.

        sum_b (n_b / n) |right_b / n_b - confidence_b|,   confidence_i = max_c softmax(z_i)(c)

    Over 15 bins of equal width, ((b - 1) / 15, b / 15], of the confidence, which is the mean over a bin's samples.
    Source: Guo et al. 2017, On calibration of modern neural networks, equation 3.
    """

    name, column, task, higher, percent = "ece", "ECE", "classification", False, True

    def sample(self, outputs: Float[Array, "classes"], label: Int[Array, ""]) -> Float[Array, "bins"]:
        """In the sample's bin: [right] - confidence."""
        confidence = jnp.max(jax.nn.softmax(outputs))
        place = jnp.clip(jnp.ceil(confidence * BINS) - 1, 0, BINS - 1)
        return jnp.where(jnp.arange(BINS) == place, (jnp.argmax(outputs) == label) - confidence, 0)

    def finish(self, sums: Float[np.ndarray, "n bins"], count: Int[np.ndarray, "n"]) -> Quotient:
        """The bins' differences / samples."""
        return np.abs(sums).sum(axis=1), count
