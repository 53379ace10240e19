"""The zoo's models as functions of arrays in PyTorch's layout, as a user of a JAX library writes them by hand."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax


def forward_of(model: dict[str, Any]) -> Callable[[Sequence[Array], Array], Array]:
    """(weights, samples) -> logits; images are (height, width, channels)."""
    convolutions = len(model.get("channels", ()))

    def forward(weights: Sequence[Array], x: Array) -> Array:
        layers = list(zip(weights[::2], weights[1::2], strict=True))
        for weight, bias in layers[:convolutions]:
            x = lax.conv_general_dilated(
                x, weight, (1, 1), model["padding"], dimension_numbers=("NHWC", "OIHW", "NHWC")
            )
            side = (1, model["pool"], model["pool"], 1)
            x = jax.nn.relu(lax.reduce_window(x + bias, -jnp.inf, lax.max, side, side, "VALID"))
        if convolutions:
            x = x.transpose(0, 3, 1, 2)
        x = x.reshape(len(x), -1)
        for weight, bias in layers[convolutions:-1]:
            x = jax.nn.relu(x @ weight.T + bias)
        return x @ layers[-1][0].T + layers[-1][1]

    return forward


def gradient_of(model: dict[str, Any]) -> Callable[[Sequence[Array], Array, Array], Sequence[Array]]:
    """(weights, samples, labels) -> gradient of the mean cross-entropy."""
    forward = forward_of(model)

    def loss(weights: Sequence[Array], x: Array, y: Array) -> Array:
        return optax.softmax_cross_entropy_with_integer_labels(forward(weights, x), y).mean()

    return jax.grad(loss)
