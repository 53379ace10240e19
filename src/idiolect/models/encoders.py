"""Encoders: map one modality of a sample to a vector of features."""

from collections.abc import Callable, Sequence
from math import prod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from idiolect.core.errors import require
from idiolect.models.conv import Conv2d, max_pool
from idiolect.models.mlp import MLP
from idiolect.models.recurrent import GRU

Encoder = Callable[[Array], Float[Array, "width"]]


class Dense(eqx.Module):
    """Encoder of a feature vector: an MLP with ReLU after the last layer, too. x: any shape; features: (width,)."""

    layers: MLP

    def __init__(self, shape: tuple[int, ...], width: int, *, hidden: Sequence[int] = (), key: PRNGKeyArray) -> None:
        self.layers = MLP(prod(shape), hidden, width, key=key)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "width"]:
        """The features of one sample."""
        return jax.nn.relu(self.layers(x))


class Signal(eqx.Module):
    """Encoder of a signal: convolutions over time, each with ReLU and max pooling; a GRU; the mean over time.

    channels: filters of each convolution of length `kernel`, SAME padding; (): only the GRU. pool: the length and
    stride of a pooling window. x: (time, channels); features: (width,). With 3 input channels, channels
    (32, 64, 128), kernel 5, pool 2 and width 128 it has 150,976 parameters, as FedMultimodal's encoders (Feng et al.,
    KDD 2023). Raises `ConfigError` if the signal is too short for the poolings.
    """

    convolutions: tuple[Conv2d, ...]
    recurrent: GRU
    pool: int = eqx.field(static=True)

    def __init__(
        self,
        shape: tuple[int, ...],
        width: int,
        *,
        channels: Sequence[int] = (16, 32, 32),
        kernel: int = 5,
        pool: int = 2,
        key: PRNGKeyArray,
    ) -> None:
        require(len(shape) == 2, f"a signal must be (time, channels), not {shape}")
        remaining = shape[0] // pool ** len(channels)
        require(remaining > 0, f"a signal of {shape[0]} times is too short for {len(channels)} poolings of {pool}")
        keys = iter(jax.random.split(key, len(channels) + 1))
        sizes = (shape[1], *channels)
        self.convolutions = tuple(
            Conv2d(before, filters, (kernel, 1), padding="SAME", key=next(keys))
            for before, filters in zip(sizes, channels, strict=False)
        )
        self.recurrent, self.pool = GRU(sizes[-1], width, key=next(keys)), pool

    def __call__(self, x: Float[Array, "time channels"]) -> Float[Array, "width"]:
        """The features of one signal."""
        h = x[:, None, :]  # an image of one column
        for convolution in self.convolutions:
            h = jax.nn.relu(max_pool(convolution(h), (self.pool, 1), stride=self.pool))
        return jnp.mean(self.recurrent(h[:, 0, :]), axis=0)


class Text(eqx.Module):
    """Encoder of a text: word vectors through a GRU, the mean of its states over the words.

    A word vector of zeros is padding at any position: the states and the mean skip it.
    x: (words, numbers); features: (width,), zeros for a text without words.
    """

    recurrent: GRU

    def __init__(self, shape: tuple[int, ...], width: int, *, key: PRNGKeyArray) -> None:
        require(len(shape) == 2, f"a text must be (words, numbers), not {shape}")
        self.recurrent = GRU(shape[1], width, key=key)

    def __call__(self, x: Float[Array, "words numbers"]) -> Float[Array, "width"]:
        """The features of one text."""
        is_word = jnp.any(x != 0, axis=1)
        return is_word @ self.recurrent(x, is_word) / jnp.maximum(jnp.sum(is_word), 1)
