"""Expected calibration error."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from idiolect.metrics.base import OfSums, Quotient

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
