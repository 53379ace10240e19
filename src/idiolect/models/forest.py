"""Boosted trees as a model: a linear part, an own intercept, and the values of the leaves that a sample reaches."""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int


class Splits(NamedTuple):
    """The splits of trees in the order in which they were made; leading axes (trees, scores).

    Node 0 is the root. Split k divides the node `node[k]`, -1 if there is no split k, into the nodes 2k + 1 (left)
    and 2k + 2 (right). feature: the feature that it divides by, or the number of features for a division of clients.
    cut: a sample goes left if its feature is at most this number. missing: whether a missing value goes left.
    """

    node: Int[Array, "*trees splits"]
    feature: Int[Array, "*trees splits"]
    cut: Array
    missing: Bool[Array, "*trees splits"]


class Forest(eqx.Module):
    """Scores linear [1, x] + intercept + the sum of the leaf values of the first `done` trees; then outputs.

    splits: leaves (trees, scores, splits), cuts in the units of x. value: (trees, scores, nodes), already multiplied
    by the learning rate. sides: (trees, scores, splits), whether the client is on the left of a division of clients.
    linear: (scores, 1) or (scores, 1 + features). intercept: (scores,). outputs: 0 for a regression, whose output is
    the score; 2: one score s, the outputs are (0, s); else one score per output.
    """

    splits: Splits
    value: Float[Array, "trees scores nodes"]
    sides: Bool[Array, "trees scores splits"]
    linear: Float[Array, "scores inputs"]
    intercept: Float[Array, "scores"]
    done: Int[Array, ""]
    outputs: int = eqx.field(static=True)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """The outputs of one sample of any shape; missing values are NaN."""
        x = finite(x.astype(self.value.dtype))

        def add(tree: Array, scores: Float[Array, "scores"]) -> Float[Array, "scores"]:
            splits, value, sides = jax.tree.map(lambda leaf: leaf[tree], (self.splits, self.value, self.sides))
            return scores + jax.vmap(lambda *one: self._leaf(x, *one))(splits, value, sides)

        first = linear_scores(self.linear, x[None])[0] + self.intercept
        return outputs_of(jax.lax.fori_loop(0, jnp.minimum(self.done, len(self.value)), add, first), self.outputs)

    def _leaf(self, x: Array, splits: Splits, value: Array, sides: Array) -> Float[Array, ""]:
        """The value of the leaf of one tree that a sample reaches."""
        entry = x[jnp.minimum(splits.feature, len(x) - 1)]
        left = jnp.where(jnp.isnan(entry), splits.missing, entry <= splits.cut)
        left = jnp.where(splits.feature == len(x), sides, left)
        place = jnp.zeros((), splits.node.dtype)
        for k in range(len(left)):
            child = jnp.where(left[k], 2 * k + 1, 2 * k + 2).astype(place.dtype)
            place = jnp.where(place == splits.node[k], child, place)
        return value[place]


def finite(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The features as one vector per sample, infinite ones as the largest number, missing ones as NaN."""
    most = jnp.finfo(x.dtype).max
    return jnp.clip(x.reshape(-1), -most, most)


def linear_scores(linear: Float[Array, "scores inputs"], x: Float[Array, "n d"]) -> Float[Array, "n scores"]:
    """The linear part of rows, a missing value as 0; linear: (scores, 1) has no part but the constant."""
    scores = jnp.broadcast_to(linear[:, 0], (len(x), len(linear)))
    if linear.shape[1] == 1:
        return scores
    return scores + jnp.matmul(jnp.where(jnp.isnan(x), 0, x), linear[:, 1:].T, precision="highest")


def outputs_of(scores: Float[Array, "scores"], outputs: int) -> Float[Array, "..."]:
    """Turn scores into outputs: the score itself (a regression), (0, s) for two classes, else all scores."""
    if outputs == 0:
        return scores.reshape(())
    return jnp.concatenate([jnp.zeros_like(scores), scores]) if outputs == 2 else scores


def scores_of(task: str, outputs: int) -> tuple[int, int]:
    """(number of scores, the `outputs` of a `Forest`) for data of this task and with so many outputs."""
    if task == "regression":
        return 1, 0
    return (1 if outputs == 2 else outputs), outputs


def forest_in(tensors: Mapping[str, np.ndarray], task: str, outputs: int) -> Forest | None:
    """The forest that the tensors of a file hold, by their names and shapes; None if they are not those of one."""
    scores, kind = scores_of(task, outputs)
    names = [*(f"splits.{name}" for name in Splits._fields), "value", "sides", "linear", "intercept", "done"]
    if set(tensors) != {*names} or tensors["value"].ndim != 3:
        return None
    trees, _, nodes = tensors["value"].shape
    expected = {name: (trees, scores, nodes // 2) for name in names if name.startswith("s")}
    expected |= {"value": (trees, scores, nodes), "intercept": (scores,), "done": ()}
    if any(tensors[name].shape != shape for name, shape in expected.items()) or nodes % 2 == 0:
        return None
    arrays = [jnp.asarray(tensors[name]) for name in names]
    return Forest(Splits(*arrays[:4]), *arrays[4:], outputs=kind)
