"""Fusion heads: one prediction from the features of several modalities, some of which may be absent."""

from collections.abc import Mapping, Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from idiolect.models.mlp import MLP

Fusion = Literal["late", "concat", "attention"]

Features = Mapping[str, Float[Array, "width"]]
Flags = Mapping[str, Float[Array, ""]]


class Concatenation(eqx.Module):
    """head([f_1, .., f_M]), an absent modality's features replaced by 0. f_m: (width,); outputs: (num_outputs,)."""

    head: MLP
    names: tuple[str, ...] = eqx.field(static=True)
    width: int = eqx.field(static=True)

    def __init__(
        self, names: Sequence[str], width: int, hidden: Sequence[int], num_outputs: int, *, key: PRNGKeyArray
    ) -> None:
        self.names, self.width = tuple(names), width
        self.head = MLP(len(self.names) * width, hidden, num_outputs, key=key)

    def __call__(self, features: Features, present: Flags) -> Float[Array, "outputs"]:
        """Outputs of one sample; a modality that is not in `features` is absent."""
        return self.head(jnp.concatenate([_kept(features, present, name, self.width) for name in self.names]))


class Attention(eqx.Module):
    """head(sum_m a_m f_m), a = softmax over the present modalities of v . tanh(U f_m + b).

    f_m: (width,); outputs: (num_outputs,). A single present modality has weight 1.
    """

    hidden: eqx.nn.Linear
    score: eqx.nn.Linear
    head: MLP

    def __init__(
        self, names: Sequence[str], width: int, hidden: Sequence[int], num_outputs: int, *, key: PRNGKeyArray
    ) -> None:
        first, second, third = jax.random.split(key, 3)
        self.hidden = eqx.nn.Linear(width, width, dtype=jnp.float32, key=first)
        self.score = eqx.nn.Linear(width, "scalar", use_bias=False, dtype=jnp.float32, key=second)
        self.head = MLP(width, hidden, num_outputs, key=third)

    def __call__(self, features: Features, present: Flags) -> Float[Array, "outputs"]:
        """Outputs of one sample; a modality that is not in `features` is absent."""
        rows = jnp.stack([_kept(features, present, name, 0) for name in features])
        is_present = jnp.stack([present[name] for name in features]) > 0
        scores = jax.vmap(lambda row: self.score(jnp.tanh(self.hidden(row))))(rows)
        lowest = jnp.finfo(scores.dtype).min / 2  # finite: if all are absent, -inf - -inf is NaN
        return self.head(jax.nn.softmax(jnp.where(is_present, scores, lowest)) @ rows)


def _kept(features: Features, present: Flags, name: str, width: int) -> Float[Array, "width"]:
    if name not in features:
        return jnp.zeros(width)
    return jnp.where(present[name] > 0, features[name], 0)


FUSIONS: dict[str, type[Concatenation] | type[Attention]] = {"concat": Concatenation, "attention": Attention}
