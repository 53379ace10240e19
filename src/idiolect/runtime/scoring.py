"""Scoring: reduce a split's tiles, one after the other, to each client's metrics and those over all samples."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from idiolect.client.objective import Batch, Objective, Scores
from idiolect.client.samples import Samples
from idiolect.client.tiles import Tiles
from idiolect.core import tree
from idiolect.metrics.base import Metric, OfSamples, OfSums, Quotient


def divided(quotient: tuple[Any, Any]) -> np.ndarray:
    """The values of a metric in double precision, NaN where the denominator is 0."""
    numerator, denominator = (np.asarray(part, np.float64) for part in quotient)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)


class Each(NamedTuple):
    """Every client's sum of losses, number of samples, and metrics: name -> quotient."""

    loss: Float[Array | np.ndarray, "..."]
    count: Int[Array | np.ndarray, "..."]  # pyright: ignore[reportIncompatibleMethodOverride]
    values: dict[str, Quotient]

    def flat(self) -> "Each":
        """Join the clients of several devices: leaves (devices, n) -> (devices * n,)."""
        return jax.tree.map(lambda leaf: leaf.reshape(-1), self)

    def first(self, clients: int) -> "Each":
        """Keep only the first `clients` clients."""
        return jax.tree.map(lambda leaf: leaf[:clients], self)


class Pool(NamedTuple):
    """The sums and samples from which metrics over all clients are computed; of several devices, leaves (parts, ...).

    sums, samples: by the metric's name; keep: whether each sample counts. Metrics by class are left out if each
    client numbers its own classes.
    """

    count: Int[Array | np.ndarray, "..."]  # pyright: ignore[reportIncompatibleMethodOverride]
    sums: dict[str, PyTree[Array | np.ndarray]]
    samples: dict[str, PyTree[Array | np.ndarray]]
    keep: Bool[Array | np.ndarray, "... tiles rows"] | None


class Sums(NamedTuple):
    """Sums over many tiles with Kahan's compensation. total: the sums; lost: their rounding errors."""

    total: PyTree[Array]
    lost: PyTree[Array]

    @classmethod
    def like(cls, sums: PyTree) -> "Sums":
        """Start at zero, with the shapes of these sums."""
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), sums)
        return cls(zeros, zeros)

    def add(self, more: PyTree[Array]) -> "Sums":
        """Add another tile's sums."""
        fresh = jax.tree.map(jnp.subtract, more, self.lost)
        total = jax.tree.map(jnp.add, self.total, fresh)
        return Sums(total, jax.tree.map(lambda new, old, part: (new - old) - part, total, self.total, fresh))


def score_tiles(
    objective: Objective,
    metrics: Sequence[Metric],
    params: PyTree,
    samples: Samples,
    ids: Int[Array, "clients"],
    tiles: Tiles,
) -> tuple[Each, Pool]:
    """Score the clients `ids`; returns (each client's numbers, the parts of the metrics over all their samples).

    params: leaves (clients, ...). A client's tiles follow each other, so only one client's sums are held at a time.
    """
    of_sums = [metric for metric in metrics if isinstance(metric, OfSums)]
    of_samples = [metric for metric in metrics if isinstance(metric, OfSamples)]
    pooled = {metric.name for metric in metrics if samples.outputs is None or not metric.by_class}

    def score(owner: Array, first: Array, size: Array) -> Scores:
        x, y, _ = samples.of(ids[owner])
        # A slice near the end is moved back to fit; the weights then select the rows that were meant.
        begin = jnp.minimum(first, y.shape[0] - tiles.rows)
        position = begin + jnp.arange(tiles.rows)
        weight = ((position >= first) & (position < first + size)).astype(jnp.result_type(float))
        part = Batch(
            jax.lax.dynamic_slice_in_dim(x, begin, tiles.rows),
            jax.lax.dynamic_slice_in_dim(y, begin, tiles.rows),
            weight,
            None if samples.outputs is None else samples.outputs[ids[owner]],
        )
        return objective.scores(tree.gather(params, owner), part, metrics)

    def step(before: tuple[Sums, Sums], tile: tuple[Array, ...]) -> tuple[tuple[Sums, Sums], PyTree]:
        client, everyone = before
        begins, *tile_fields = tile
        scores = score(*tile_fields)
        client = jax.tree.map(lambda sum: jnp.where(begins, 0, sum).astype(sum.dtype), client)
        client = client.add((scores.loss, scores.count, scores.sums))
        everyone = everyone.add((scores.count, {name: scores.sums[name] for name in scores.sums if name in pooled}))
        loss, count, sums = client.total
        each = Each(loss, count, {metric.name: metric.finish(sums[metric.name], count) for metric in of_sums})
        return (client, everyone), (each, scores.samples, scores.keep)

    owner = jnp.asarray(tiles.owner)
    begins = jnp.concatenate([jnp.ones(1, bool), owner[1:] != owner[:-1]])[: len(owner)]
    tile_fields = (owner, jnp.asarray(tiles.first), jnp.asarray(tiles.size))
    like = jax.eval_shape(score, *(jax.ShapeDtypeStruct((), part.dtype) for part in tile_fields))
    client = Sums.like((like.loss, like.count, like.sums))
    everyone = Sums.like((like.count, {name: like.sums[name] for name in like.sums if name in pooled}))
    (_, everyone), (each, sampled, keep) = jax.lax.scan(step, (client, everyone), (begins, *tile_fields))
    # A client's numbers are complete after its last tile; empty tiles are padding and count for no client.
    order = jnp.where(tile_fields[2] > 0, jnp.arange(len(owner)), -1)
    last = jnp.full(len(ids), -1).at[owner].max(order)
    last = jnp.where(last < 0, len(owner), last)
    each = jax.tree.map(lambda leaf: jnp.append(leaf, jnp.zeros(1, leaf.dtype))[last], each)
    each.values.update({m.name: m.finish(sampled[m.name], keep, owner, len(ids)) for m in of_samples})
    count, sums = everyone.total
    sampled = {name: values for name, values in sampled.items() if name in pooled}
    pool = Pool(count, sums, sampled, keep if sampled else None)
    return each, pool


def over_all(metrics: Sequence[Metric], pool: Pool) -> dict[str, Quotient]:
    """Compute the metrics over all samples of all parts, leaves (parts, ...); those without a value are left out."""
    count, sums = jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0, dtype=leaf.dtype), (pool.count, pool.sums))
    values: dict[str, Quotient] = {}
    for metric in metrics:
        if isinstance(metric, OfSums) and metric.name in sums:
            values[metric.name] = metric.finish(sums[metric.name], count)
        elif isinstance(metric, OfSamples) and metric.name in pool.samples and pool.keep is not None:
            flat = (pool.samples[metric.name], pool.keep)
            sampled, keep = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), flat)
            owner = jnp.zeros(keep.shape[0], jnp.int32)
            values[metric.name] = jax.tree.map(lambda value: value[0], metric.finish(sampled, keep, owner, 1))
    return values
