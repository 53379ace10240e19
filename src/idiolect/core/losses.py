"""Losses of one sample: (outputs, label) -> a number."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

SampleLoss = Callable[[Array, Array], Float[Array, ""]]


def lowest(outputs: Float[Array, "..."]) -> float:
    """The output that masks a class which a client does not have: finite, and its softmax probability is 0."""
    return float(jnp.finfo(outputs.dtype).min / 2)  # not -inf, since -inf - -inf is NaN


def cross_entropy(outputs: Float[Array, "classes"], label: Array) -> Float[Array, ""]:
    """-log softmax(outputs)[label]."""
    return optax.softmax_cross_entropy_with_integer_labels(outputs, label)


def squared_probabilities(outputs: Float[Array, "classes"], label: Array) -> Float[Array, ""]:
    """The mean over the classes of (softmax(outputs)_c - [c = label])^2."""
    return _mean((jax.nn.softmax(outputs) - _one_hot(outputs, label)) ** 2, outputs)


def binary_cross_entropy(outputs: Float[Array, "classes"], label: Array) -> Float[Array, ""]:
    """The mean over the classes of the cross-entropy of sigmoid(outputs)_c against [c = label]."""
    return _mean(optax.sigmoid_binary_cross_entropy(outputs, _one_hot(outputs, label)), outputs)


def half_squared_error(output: Float[Array, "..."], target: Array) -> Float[Array, ""]:
    """(output - target)^2 / 2 for a scalar output of shape () or (1,)."""
    return 0.5 * jnp.sum((output.reshape(()) - target) ** 2)


@dataclass(frozen=True)
class Weighted:
    """w_label * loss(outputs, label): a sample counts by the weight of its class. Equal by value."""

    loss: SampleLoss
    weights: tuple[float, ...]

    def __call__(self, outputs: Float[Array, "classes"], label: Array) -> Float[Array, ""]:
        """The weighted loss."""
        return jnp.asarray(self.weights, outputs.dtype)[label] * self.loss(outputs, label)


LOSSES: dict[str, SampleLoss] = {
    "cross-entropy": cross_entropy,
    "mse": squared_probabilities,
    "bce": binary_cross_entropy,
}


def _one_hot(outputs: Float[Array, "classes"], label: Array) -> Float[Array, "classes"]:
    return jax.nn.one_hot(label, outputs.shape[-1], dtype=outputs.dtype)


def _mean(values: Float[Array, "classes"], outputs: Float[Array, "classes"]) -> Float[Array, ""]:
    """The mean over the classes that the client has, whose outputs are not masked by `lowest`."""
    held = outputs > lowest(outputs)
    return jnp.sum(jnp.where(held, values, 0)) / jnp.sum(held)
