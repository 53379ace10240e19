"""Convolutional networks: blocks of a convolution and a pooling, hidden layers, outputs."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from idiolect.core.errors import ConfigError, require
from idiolect.core.plugins import named
from idiolect.core.settings import Setting
from idiolect.models.conv import Conv2d, Method, Padding, max_pool, output_size
from idiolect.models.spec import ConvolutionMethod, Image, Layers, PaddingName, Positive, Spec, Widths


class CNN(eqx.Module):
    """Convolutions, each with a max pool and ReLU; hidden layers with ReLU; outputs.

    channels: the filters of each convolution, kernel x kernel, stride 1; pool: the side of the pooling's windows,
    `pool_stride` apart; dense: the widths of the hidden layers, none for (). x: one image, (height, width),
    (height, width, channels), or flattened if `image_shape` says how to unfold it; outputs: (num_outputs,).
    convolution: the method of `convolve`.
    Raises `ConfigError` if the images have another shape or are too small, and on a size that is not positive.

    The defaults, with SAME padding, are the network of McMahan et al., Communication-Efficient Learning of Deep
    Networks (FedAvg), section 3: 1,663,370 parameters on 28 x 28 images and 10 classes.
    """

    convolutions: tuple[Conv2d, ...]
    hidden: tuple[eqx.nn.Linear, ...]
    output: eqx.nn.Linear
    image_shape: tuple[int, int, int] = eqx.field(static=True)
    pool: int = eqx.field(static=True)
    pool_stride: int = eqx.field(static=True)
    pool_padding: Padding = eqx.field(static=True)

    def __init__(
        self,
        feature_shape: Sequence[int],
        num_outputs: int,
        *,
        image_shape: Sequence[int] | None = None,
        channels: Sequence[int] = (32, 64),
        kernel: int = 5,
        padding: Padding = "VALID",
        pool: int = 2,
        pool_stride: int = 2,
        pool_padding: Padding = "VALID",
        dense: Sequence[int] = (512,),
        convolution: Method = "auto",
        key: PRNGKeyArray,
    ) -> None:
        for name, sizes in {"dense": dense, "num_outputs": [num_outputs], "pool": [pool, pool_stride]}.items():
            require(all(size > 0 for size in sizes), f"CNN: {name} must be positive, not {list(sizes)}")
        self.image_shape = unfolded(feature_shape, image_shape)
        self.pool, self.pool_stride, self.pool_padding = pool, pool_stride, pool_padding

        def after(side: int, padding: Padding = padding) -> int:
            """Pixels left of a side after all convolutions and pools."""
            for _ in channels:
                side = max(output_size(side, kernel, padding=padding), 0)
                side = max(output_size(side, pool, pool_stride, pool_padding), 0)
            return side

        rows, columns = after(self.image_shape[0]), after(self.image_shape[1])
        if min(rows, columns) < 1:
            smallest = bisect_left(range(2**62), 1, key=after)
            raise ConfigError(
                f"images of shape {self.image_shape} are too small for a CNN with {len(channels)} {kernel}x{kernel} "
                f"kernels and {padding} padding: it needs at least {smallest}x{smallest} pixels"
                + ("; try padding = 'SAME'" if after(min(self.image_shape[:2]), "SAME") >= 1 else "")
            )
        keys = iter(jax.random.split(key, len(channels) + len(dense) + 1))
        self.convolutions = tuple(
            Conv2d(before, filters, kernel, padding=padding, method=convolution, key=next(keys))
            for before, filters in zip((self.image_shape[2], *channels), channels, strict=False)
        )
        widths = (rows * columns * [self.image_shape[2], *channels][-1], *dense, num_outputs)
        *hidden, self.output = (
            eqx.nn.Linear(before, width, dtype=jnp.float32, key=next(keys)) for before, width in pairwise(widths)
        )
        self.hidden = tuple(hidden)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "outputs"]:
        """Outputs for one image."""
        h = jnp.reshape(x, self.image_shape)
        for convolution in self.convolutions:
            # The bias after the pooling: the same numbers, for rounding keeps their order, from fewer sums.
            h = convolution.without_bias(h)
            h = max_pool(h, self.pool, stride=self.pool_stride, padding=self.pool_padding)
            h = jax.nn.relu(h if convolution.bias is None else h + convolution.bias)
        h = jnp.ravel(h)
        for layer in self.hidden:
            h = jax.nn.relu(layer(h))
        return self.output(h)


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


_KEYS = {
    "channels": Setting(Widths, [32, 64]),
    "kernel": Setting(Positive, 5),
    "padding": Setting(PaddingName, "VALID"),
    "pool": Setting(Positive, 2),
    "pool_stride": Setting(Positive, 2),
    "pool_padding": Setting(PaddingName, "VALID"),
    "dense": Setting(Layers, [512]),
    "image_shape": Setting(Image | None, None),  # the features' own
    "convolution": Setting(ConvolutionMethod, "auto"),
}
_WORDS = """
channels: filters of each convolution, kernel x kernel, stride 1, padding VALID or SAME; after each a max pool over
windows of side pool, pool_stride apart, pool_padding VALID or SAME. dense: widths of the hidden layers after them.
image_shape: (height, width) or (height, width, channels), where samples are flattened images. convolution: auto, with
the fewest products on a CPU, or direct, as the definition adds them; they differ by rounding.
"""


def _facts(description: str, **defaults: Any) -> dict[str, Any]:
    """What the zoo holds of a CNN with other defaults."""
    keys = {key: Setting(kind, defaults.get(key, default)) for key, (kind, default) in _KEYS.items()}
    return {"description": description, "keys": keys, "words": _WORDS}


# The networks of Table 4 in PFLEGO (Nikoloutsopoulos, Koutsopoulos, Titsias).
_OMNIGLOT = {"channels": [64] * 4, "kernel": 3, "padding": "SAME", "dense": []}
_PFLEGO_CIFAR = {"channels": [64, 64], "padding": "SAME", "pool": 3, "pool_padding": "SAME", "dense": [384, 192]}


@named("cnn", **_facts("convolutions with max pooling, hidden layers; FedAvg's network for images"))
@named("omniglot-cnn", **_facts("cnn with the sizes that PFLEGO takes for Omniglot", **_OMNIGLOT))
@named("pflego-cifar-cnn", **_facts("cnn with the sizes that PFLEGO takes for CIFAR-10", **_PFLEGO_CIFAR))
def cnn(spec: Spec, feature_shape: tuple[int, ...], num_outputs: int, key: PRNGKeyArray) -> eqx.Module:
    """Build a `CNN`."""
    return CNN(feature_shape, num_outputs, **{name: spec[name] for name in _KEYS}, key=key)
