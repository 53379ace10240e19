"""Accuracy, balanced accuracy and macro-F1: metrics of the predicted class."""

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


class MacroF1(OfSums):
    """Macro-F1: the mean over the classes of F1, the harmonic mean of precision and recall.

        F1_c = 2 right_c / (predicted_c + there_c)

    right_c, predicted_c, there_c: the samples of class c that are predicted rightly, that are predicted to be of it,
    that are of it. A class that is neither predicted nor there does not count.
    scikit-learn: `f1_score(average="macro")`.
    """

    name, column, task, higher, percent, by_class = "macro-f1", "macro-F1", "classification", True, True, True
    steps = "classes"

    def sample(self, outputs: Float[Array, "classes"], label: Int[Array, ""]) -> Bool[Array, "3 classes"]:
        """Of each class, whether the sample is rightly predicted, predicted, and there."""
        classes = jnp.arange(outputs.shape[-1])
        predicted, there = classes == jnp.argmax(outputs), classes == label
        return jnp.stack([predicted & there, predicted, there])

    def finish(self, sums: Int[np.ndarray, "n 3 classes"], count: Int[np.ndarray, "n"]) -> Quotient:
        """The sum of F1 / the classes that are predicted or there."""
        right, predicted, there = np.moveaxis(sums, 1, 0)
        either = predicted + there
        return (2 * right / np.maximum(either, 1)).sum(axis=1), (either > 0).sum(axis=1)
