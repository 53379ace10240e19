"""Boosted trees as a model: a linear part, an own intercept, and the values of the leaves that a sample reaches."""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

_SPLITS = ("node", "feature", "cut", "missing")


class Splits(NamedTuple):
    """The splits of trees in the order in which they were made; leading axes (trees, scores).

    Node 0 is the root. Split k divides the node `node[k]`, -1 if there is no split k, into the nodes 2k + 1 (left)
    and 2k + 2 (right). feature: the feature that it divides by, or the number of features for a division of clients.
    cut: a sample goes left if its feature is at most this number. missing: whether a missing value goes left.
    members: of a division of categories, whose `feature` is the first one of its column, the categories that go left,
    a bit each; else 0. Samples without a category go right. None if no column is divided so.
    """

    node: Int[Array, "*trees splits"]
    feature: Int[Array, "*trees splits"]
    cut: Array
    missing: Bool[Array, "*trees splits"]
    members: UInt32[Array, "*trees splits words"] | None


class Forest(eqx.Module):
    """Scores linear [1, x] + intercept + the sum of the leaf values of the first `done` trees; then outputs.

    splits: leaves (trees, scores, splits), cuts in the units of x. value: (trees, scores, nodes), already multiplied
    by the learning rate. sides: (trees, scores, splits), whether the client is on the left of a division of clients.
    linear: (scores, 1) or (scores, 1 + features). intercept: (scores,). categories: the columns that trees divide by
    sets, each as (first feature, features); None if there are none. outputs: 0 for a regression, whose output is
    the score; 2: one score s, the outputs are (0, s); else one score per output.
    """

    splits: Splits
    value: Float[Array, "trees scores nodes"]
    sides: Bool[Array, "trees scores splits"]
    linear: Float[Array, "scores inputs"]
    intercept: Float[Array, "scores"]
    done: Int[Array, ""]
    categories: Int[Array, "columns 2"] | None
    outputs: int = eqx.field(static=True)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """The outputs of one sample of any shape; missing values are NaN."""
        x = finite(x.astype(self.value.dtype))
        code = self._codes(x)

        def add(tree: Array, scores: Float[Array, "scores"]) -> Float[Array, "scores"]:
            splits, value, sides = jax.tree.map(lambda leaf: leaf[tree], (self.splits, self.value, self.sides))
            return scores + jax.vmap(lambda *one: self._leaf(x, code, *one))(splits, value, sides)

        first = linear_scores(self.linear, x[None])[0] + self.intercept
        return outputs_of(jax.lax.fori_loop(0, jnp.minimum(self.done, len(self.value)), add, first), self.outputs)

    def _codes(self, x: Float[Array, "features"]) -> Int[Array, "features"]:
        """At the first feature of a column of categories, the sample's category; -1 elsewhere, or if it has none."""
        if self.categories is None:
            return jnp.full(len(x), -1, jnp.int32)
        first, count = self.categories[:, :1], self.categories[:, 1:]
        place = jnp.arange(len(x), dtype=jnp.int32) - first
        has = (place >= 0) & (place < count) & (x > 0.5)
        code = jnp.where(jnp.any(has, axis=1), jnp.argmax(has, axis=1) - first[:, 0], -1).astype(jnp.int32)
        return jnp.full(len(x), -1, jnp.int32).at[first[:, 0]].set(code)

    def _leaf(self, x: Array, code: Array, splits: Splits, value: Array, sides: Array) -> Float[Array, ""]:
        """The value of the leaf of one tree that a sample reaches."""
        feature = jnp.minimum(splits.feature, len(x) - 1)
        entry = x[feature]
        left = jnp.where(jnp.isnan(entry), splits.missing, entry <= splits.cut)
        if splits.members is not None:
            member = jax.vmap(is_member)(splits.members, code[feature]) & (code[feature] >= 0)
            left = jnp.where(jnp.any(splits.members != 0, axis=1), member, left)
        left = jnp.where(splits.feature == len(x), sides, left)
        place = jnp.zeros((), splits.node.dtype)
        for k in range(len(left)):
            child = jnp.where(left[k], 2 * k + 1, 2 * k + 2).astype(place.dtype)
            place = jnp.where(place == splits.node[k], child, place)
        return value[place]


def packed(inside: Bool[Array, "n"]) -> UInt32[Array, "words"]:
    """Truth values as the bits of words, 32 in each, the first one the lowest bit."""
    bits = jnp.pad(inside, (0, -len(inside) % 32)).reshape(-1, 32).astype(jnp.uint32)
    return jnp.sum(bits << jnp.arange(32, dtype=jnp.uint32), axis=1, dtype=jnp.uint32)


def is_member(words: UInt32[Array, "words"], place: Int[Array, "*any"]) -> Bool[Array, "*any"]:
    """Whether the bits at these places are set; see `packed`."""
    return (words[place // 32] >> (place % 32).astype(jnp.uint32)) & 1 == 1


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
    names = [*(f"splits.{name}" for name in _SPLITS), "value", "sides", "linear", "intercept", "done"]
    sets = {"splits.members", "categories"} & {*tensors}  # both where trees divide categories
    if {*tensors} - sets != {*names} or len(sets) == 1 or tensors["value"].ndim != 3:
        return None
    trees, _, nodes = tensors["value"].shape
    expected = {name: (trees, scores, nodes // 2) for name in names if name.startswith("s")}
    expected |= {"value": (trees, scores, nodes), "intercept": (scores,), "done": ()}
    if sets:
        words, columns = tensors["splits.members"].shape[-1:], tensors["categories"].shape[:1]
        expected |= {"splits.members": (trees, scores, nodes // 2, *words), "categories": (*columns, 2)}
    if any(tensors[name].shape != shape for name, shape in expected.items()) or nodes % 2 == 0:
        return None
    read = {name: jnp.asarray(array) for name, array in tensors.items()}
    splits = Splits(*(read[f"splits.{name}"] for name in _SPLITS), members=read.get("splits.members"))
    value, sides, linear, intercept, done = (read[name] for name in names[len(_SPLITS) :])
    return Forest(splits, value, sides, linear, intercept, done, read.get("categories"), outputs=kind)
