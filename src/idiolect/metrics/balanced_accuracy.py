"""Balanced accuracy."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from idiolect.metrics.base import OfSums, Quotient


class BalancedAccuracy(OfSums):
    """Balanced accuracy: the mean over the classes that are there of recall.

        recall_c = right_c / there_c

    right_c, there_c: the samples of class c that are predicted rightly, and all of them.
    scikit-learn: `balanced_accuracy_score`.
    """

    name, column, task = "balanced-accuracy", "balanced accuracy", "classification"
    higher, percent, by_class = True, True, True
    steps = "classes"

    def sample(self, outputs: Float[Array, "classes"], label: Int[Array, ""]) -> Bool[Array, "2 classes"]:
        """Of each class, whether the sample is rightly predicted, and there."""
        there = jnp.arange(outputs.shape[-1]) == label
        return jnp.stack([there & (jnp.argmax(outputs) == label), there])

    def finish(self, sums: Int[np.ndarray, "n 2 classes"], count: Int[np.ndarray, "n"]) -> Quotient:
        """The sum of recall / the classes that are there."""
        right, there = np.moveaxis(sums, 1, 0)
        return (right / np.maximum(there, 1)).sum(axis=1), (there > 0).sum(axis=1)
