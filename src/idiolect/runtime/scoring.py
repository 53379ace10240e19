"""Scoring: reduce a split's tiles, one after the other, to each client's metrics and those over all samples."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from idiolect.client.objective import Batch, Objective, Scores
from idiolect.client.samples import Samples, Tiles
from idiolect.core import tree
from idiolect.metrics.base import Metric, OfSamples, OfSums, Quotient, wide


def divided(quotient: tuple[Any, Any]) -> np.ndarray:
    """The values of a metric in double precision, NaN where the denominator is 0."""
    numerator, denominator = (np.asarray(part, np.float64) for part in quotient)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)


class Each(NamedTuple):
    """What a device returns of every client: its sum of losses, number of samples, and the sums of metrics by name.

    Leaves (clients, ...).
    """

    loss: Float[Array | np.ndarray, "..."]
    count: Int[Array | np.ndarray, "..."]  # pyright: ignore[reportIncompatibleMethodOverride]
    sums: dict[str, PyTree[Array | np.ndarray]]

    def flat(self) -> "Each":
        """Join the clients of several devices: leaves (devices, n, ...) -> (devices * n, ...)."""
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), self)


class Pool(NamedTuple):
    """What a device returns of all its clients' samples; of several devices, leaves (parts, ...).

    sums: over all samples, by the metric's name. samples: what is kept of each sample for metrics that no sums give,
    leaves (tiles, rows, ...); keep: whether each sample counts; owner: whose each tile is. apart: as `samples`, of
    metrics that have no value over all samples. Metrics by class have none if each client numbers its own classes.
    """

    count: Int[Array | np.ndarray, "..."]  # pyright: ignore[reportIncompatibleMethodOverride]
    sums: dict[str, PyTree[Array | np.ndarray]]
    samples: dict[str, PyTree[Array | np.ndarray]]
    apart: dict[str, PyTree[Array | np.ndarray]]
    keep: Bool[Array | np.ndarray, "... tiles rows"] | None
    owner: Int[Array | np.ndarray, "... tiles"] | None


class Values(NamedTuple):
    """Every client's sum of losses, number of samples, and metrics (name -> quotient), on the host."""

    loss: Float[np.ndarray, "clients"]
    count: Int[np.ndarray, "clients"]  # pyright: ignore[reportIncompatibleMethodOverride]
    values: dict[str, Quotient]

    def first(self, clients: int) -> "Values":
        """Keep only the first `clients` clients."""
        return jax.tree.map(lambda leaf: leaf[:clients], self)


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
    """Score the clients `ids`; returns (each client's numbers, those of all their samples), for `finished`.

    params: leaves (clients, ...). A client's tiles follow each other, so only one client's sums are held at a time.
    """
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
        return (client, everyone), (Each(*client.total), scores.samples, scores.keep)

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
    each = jax.tree.map(lambda leaf: jnp.concatenate([leaf, jnp.zeros((1, *leaf.shape[1:]), leaf.dtype)])[last], each)
    count, sums = everyone.total
    together = {name: values for name, values in sampled.items() if name in pooled}
    apart = {name: values for name, values in sampled.items() if name not in pooled}
    pool = Pool(count, sums, together, apart, *((keep, owner) if sampled else (None, None)))
    return each, pool


def score_models(
    objective: Objective,
    metrics: Sequence[Metric],
    models: Mapping[str, PyTree],
    samples: Mapping[str, Samples],
    ids: Int[Array, "clients"],
    tiles: Mapping[str, Tiles],
) -> dict[str, dict[str, tuple[Each, Pool]]]:
    """Score the clients `ids` with each named model, leaves (clients, ...), on each split; see `score_tiles`."""
    return {
        name: {split: score_tiles(objective, metrics, params, samples[split], ids, tiles[split]) for split in samples}
        for name, params in models.items()
    }


def finished(metrics: Sequence[Metric], each: Each, pool: Pool) -> tuple[Values, dict[str, Quotient]]:
    """Finish metrics on the host, in double precision: (each client's, those over all samples).

    each: leaves (clients, ...). pool: leaves (parts, ...), where the clients are divided equally into the parts.
    """
    count = np.asarray(each.count, np.int64)
    kept, owner = _kept(pool, len(count))
    values: dict[str, Quotient] = {}
    for metric in metrics:
        if isinstance(metric, OfSums):
            values[metric.name] = metric.finish(wide(each.sums[metric.name]), count)
        elif isinstance(metric, OfSamples):
            values[metric.name] = metric.finish(kept[metric.name], owner, len(count))
    return Values(np.asarray(each.loss, np.float64), count, values), over_all(metrics, pool, kept)


def _kept(pool: Pool, clients: int) -> tuple[dict[str, PyTree[np.ndarray]], Int[np.ndarray, "n"]]:
    """What metrics keep of the samples that count, by name, leaves (n, ...), and whose each sample is."""
    if pool.keep is None:
        return {}, np.zeros(0, np.int64)
    keep, tiles = np.asarray(pool.keep), np.asarray(pool.owner, np.int64)
    parts = len(tiles)
    owner = tiles + (clients // parts) * np.arange(parts)[:, None]
    kept = wide(jax.tree.map(lambda leaf: np.asarray(leaf)[keep], {**pool.samples, **pool.apart}))
    return kept, np.broadcast_to(owner[..., None], keep.shape)[keep]


def over_all(
    metrics: Sequence[Metric], pool: Pool, kept: Mapping[str, PyTree[np.ndarray]] | None = None
) -> dict[str, Quotient]:
    """Finish the metrics over all samples of all parts, leaves (parts, ...); those without a value are left out.

    kept: what metrics keep of the samples, where it has been gathered already.
    """
    kept = _kept(pool, 0)[0] if kept is None else kept
    sums = jax.tree.map(lambda leaf: leaf.sum(axis=0, keepdims=True), wide((pool.count, pool.sums)))
    values: dict[str, Quotient] = {}
    for metric in metrics:
        if isinstance(metric, OfSums) and metric.name in pool.sums:
            values[metric.name] = metric.finish(sums[1][metric.name], sums[0])
        elif isinstance(metric, OfSamples) and metric.name in pool.samples:
            samples = kept[metric.name]
            everyone = np.zeros(len(jax.tree.leaves(samples)[0]), np.int64)
            values[metric.name] = metric.finish(samples, everyone, 1)
    return {name: (above.reshape(()), below.reshape(())) for name, (above, below) in values.items()}
