"""The convolutional network of the FedAvg paper, for images of any size that its two poolings leave alive."""

from collections.abc import Sequence
from math import prod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from idiolect.errors import ConfigError, require
from idiolect.models.conv import Conv2d, Padding, max_pool, output_size


class CNN(eqx.Module):
    """Two convolutions, each with a 2x2 max pool and ReLU; a hidden layer with ReLU; outputs.

    5x5x32, 5x5x64 and 512 by default. x: one image, (height, width), (height, width, channels), or flattened
    if `image_shape` says how to unfold it; outputs: (num_outputs,). Raises `ConfigError` if the images have
    another shape or are too small, and on a size that is not positive.
    Source: McMahan et al., Communication-Efficient Learning of Deep Networks (FedAvg), section 3,
    with SAME padding there (1,663,370 parameters on 28 x 28 images and 10 classes).
    """

    convolutions: tuple[Conv2d, Conv2d]
    hidden: eqx.nn.Linear
    output: eqx.nn.Linear
    image_shape: tuple[int, int, int] = eqx.field(static=True)

    def __init__(
        self,
        feature_shape: Sequence[int],
        num_outputs: int,
        *,
        image_shape: Sequence[int] | None = None,
        channels: tuple[int, int] = (32, 64),
        kernel: int = 5,
        dense: int = 512,
        padding: Padding = "VALID",
        key: PRNGKeyArray,
    ) -> None:
        self.image_shape = unfolded(feature_shape, image_shape)
        first, second, hidden, output = jax.random.split(key, 4)
        rows, columns = (_after(side, kernel, padding) for side in self.image_shape[:2])
        if min(rows, columns) < 1:
            smallest = next(side for side in range(1, 4 * kernel + 8) if _after(side, kernel, padding) >= 1)
            raise ConfigError(
                f"images of shape {self.image_shape} are too small for a CNN with {kernel}x{kernel} kernels "
                f"and {padding} padding: it needs at least {smallest}x{smallest} pixels"
                + ("; try padding = 'SAME'" if padding == "VALID" and min(self.image_shape[:2]) >= 4 else "")
            )
        require(dense > 0 and num_outputs > 0, f"CNN: dense ({dense}) and num_outputs ({num_outputs}) must be > 0")
        self.convolutions = (
            Conv2d(self.image_shape[2], channels[0], kernel, padding=padding, key=first),
            Conv2d(channels[0], channels[1], kernel, padding=padding, key=second),
        )
        self.hidden = eqx.nn.Linear(rows * columns * channels[1], dense, dtype=jnp.float32, key=hidden)
        self.output = eqx.nn.Linear(dense, num_outputs, dtype=jnp.float32, key=output)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "outputs"]:
        """Outputs for one image."""
        h = jnp.reshape(x, self.image_shape)
        for convolution in self.convolutions:
            h = jax.nn.relu(max_pool(convolution(h)))
        return self.output(jax.nn.relu(self.hidden(jnp.ravel(h))))


def unfolded(feature_shape: Sequence[int], image_shape: Sequence[int] | None = None) -> tuple[int, int, int]:
    """The (height, width, channels) of features that are images; `ConfigError` if they are not."""
    features = tuple(feature_shape)
    shape = features if image_shape is None else tuple(image_shape)
    if prod(shape) != prod(features):
        raise ConfigError(
            f"image_shape {shape} has {prod(shape)} entries, but the features {features} have {prod(features)}"
        )
    if len(shape) not in (2, 3):
        raise ConfigError(
            "a CNN needs images, (height, width) or (height, width, channels), "
            f"not features of shape {shape}; set image_shape if these are flattened images"
        )
    height, width, *channels = shape
    return height, width, channels[0] if channels else 1


def _after(side: int, kernel: int, padding: Padding) -> int:
    """Pixels left of a side after both convolutions and pools."""
    for _ in range(2):
        side = max(output_size(side, kernel, padding=padding), 0) // 2
    return side
