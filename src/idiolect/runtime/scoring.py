"""Scoring: reduce a split's tiles, one after the other, to each client's metrics and those over all samples."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jaxtyping import Array, Bool, Float, Int, PyTree

from idiolect.client.objective import Batch, Objective, Scores
from idiolect.client.predictor import is_common, unshared
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


class Progress(NamedTuple):
    """A split's scores so far. pool: sums over all samples; kept: what metrics keep of each sample, by tile.

    keep: whether each sample counts; None where nothing is kept.
    """

    pool: Sums
    kept: dict[str, PyTree[Array]]
    keep: Bool[Array, "tiles rows"] | None


def score_models(
    objective: Objective,
    metrics: Sequence[Metric],
    models_of: Callable[[Int[Array, ""]], Mapping[str, PyTree]],
    samples: Mapping[str, Samples],
    ids: Int[Array, "clients"],
    tiles: Mapping[str, Tiles],
) -> dict[str, dict[str, tuple[Each, Pool]]]:
    """Score the clients `ids`, one after the other, with each named model on each split; for `finished`.

    models_of: a client's place in `ids` -> its named models. They are made when the client's turn comes, so only one
    client's models are held at a time. Returns model -> split -> (each client's numbers, those of all samples).
    """
    made, models = once_traced(lambda place: unshared(models_of(place)), _NUMBER)
    scorers = {
        name: {split: Scorer(objective, metrics, params, samples[split], ids, tiles[split]) for split in samples}
        for name, params in models.items()
    }

    def client(before: PyTree, place: Int[Array, ""]) -> tuple[PyTree, PyTree]:
        params = made(place)
        done = {
            name: {split: one.score(params[name], place, before[name][split]) for split, one in by_split.items()}
            for name, by_split in scorers.items()
        }
        parts = [
            {name: {split: pair[part] for split, pair in by_split.items()} for name, by_split in done.items()}
            for part in (0, 1)
        ]
        return parts[0], parts[1]

    begin = {name: {split: one.begin for split, one in by_split.items()} for name, by_split in scorers.items()}
    after, each = jax.lax.scan(client, begin, jnp.arange(len(ids), dtype=jnp.int32))
    return {
        name: {split: (each[name][split], one.pool(after[name][split])) for split, one in by_split.items()}
        for name, by_split in scorers.items()
    }


def score_held(
    objective: Objective,
    metrics: Sequence[Metric],
    models: Mapping[str, PyTree],
    samples: Mapping[str, Samples],
    ids: Int[Array, "clients"],
    tiles: Mapping[str, Tiles],
) -> dict[str, dict[str, tuple[Each, Pool]]]:
    """As `score_models`, with models that are held: leaves (clients, ...), or one `Shared` of all clients."""

    def scorer(model: PyTree, split: str) -> Scorer:
        own = unshared(model)
        one = (
            own
            if is_common(model)
            else jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), own)
        )
        return Scorer(objective, metrics, one, samples[split], ids, tiles[split])

    return {name: {split: scorer(model, split).held(model) for split in samples} for name, model in models.items()}


_NUMBER = jax.ShapeDtypeStruct((), jnp.int32)


def once_traced(function: Callable[..., PyTree], *arguments: PyTree) -> tuple[Callable[..., PyTree], PyTree]:
    """(the function, its result's shapes), with the function traced once however often it is used.

    arguments: arrays or their shapes; the function must be used with such.
    """
    traced, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    of_leaves, structure = jaxpr_as_fun(traced), jax.tree.structure(shapes)
    return lambda *given: structure.unflatten(of_leaves(*jax.tree.leaves(given))), shapes


class Scorer:
    """Scores a named model on the tiles of one split. A client's tiles follow each other, in the clients' order.

    params: one client's, or their shapes.
    """

    def __init__(
        self,
        objective: Objective,
        metrics: Sequence[Metric],
        params: PyTree,
        samples: Samples,
        ids: Int[Array, "clients"],
        tiles: Tiles,
    ) -> None:
        nothing = jnp.zeros(0 if len(tiles.owner) else 1, jnp.int32)  # JAX cannot look anything up in no tiles
        owner, first, size = (jnp.append(nothing, part) for part in (tiles.owner, tiles.first, tiles.size))

        def tile(params: PyTree, place: Int[Array, ""], tile: Int[Array, ""]) -> Scores:
            client, begin = ids[place], first[tile]
            x, y, _ = samples.of(client)
            # A slice near the end is moved back to fit; the weights then select the rows that were meant.
            row = jnp.minimum(begin, samples.rows - tiles.rows)
            position = row + jnp.arange(tiles.rows)
            part = Batch(
                jax.lax.dynamic_slice_in_dim(x, row, tiles.rows),
                jax.lax.dynamic_slice_in_dim(y, row, tiles.rows),
                ((position >= begin) & (position < begin + size[tile])).astype(jnp.result_type(float)),
                None if samples.outputs is None else samples.outputs[client],
            )
            return objective.scores(params, part, metrics)

        self._tile, self._like = once_traced(tile, params, _NUMBER, _NUMBER)
        self._owner = owner
        # Empty tiles are padding at the end, and no client's.
        self._count = jnp.zeros(len(ids), jnp.int32).at[owner].add((size > 0).astype(jnp.int32))
        self._end = jnp.cumsum(self._count)
        self._pooled = {metric.name for metric in metrics if samples.outputs is None or not metric.by_class}

    def _of_all(self, scores: Scores) -> PyTree:
        return scores.count, {name: scores.sums[name] for name in scores.sums if name in self._pooled}

    @property
    def begin(self) -> Progress:
        """The progress before the first client."""
        tiles, like = len(self._owner), self._like
        kept = jax.tree.map(lambda leaf: jnp.zeros((tiles, *leaf.shape), leaf.dtype), like.samples)
        return Progress(
            Sums.like(self._of_all(like)), kept, jnp.zeros((tiles, *like.keep.shape), bool) if kept else None
        )

    def score(self, params: PyTree, place: Int[Array, ""], before: Progress) -> tuple[Progress, Each]:
        """Score a client: (the split's progress, the client's numbers)."""

        def step(tile: Int[Array, ""], so_far: tuple[Progress, Sums]) -> tuple[Progress, Sums]:
            (pool, kept, keep), own = so_far
            scores = self._tile(params, place, tile)
            if keep is not None:
                kept = jax.tree.map(lambda all, new: all.at[tile].set(new), kept, scores.samples)
                keep = keep.at[tile].set(scores.keep)
            own = own.add((scores.loss, scores.count, scores.sums))
            return Progress(pool.add(self._of_all(scores)), kept, keep), own

        like, end = self._like, self._end[place]
        nothing = Sums.like((like.loss, like.count, like.sums))
        progress, own = jax.lax.fori_loop(end - self._count[place], end, step, (before, nothing))
        return progress, Each(*own.total)

    def held(self, models: PyTree) -> tuple[Each, Pool]:
        """Score all clients, tile after tile: (each client's numbers, those of all samples).

        models: leaves (clients, ...), or one `Shared`. What is kept of samples is no part of the loop's state: where
        members with other numbers of tiles are computed together, a state is copied in each step.
        """
        common, own = is_common(models), unshared(models)

        def step(before: tuple[Sums, Sums], tile: Int[Array, ""]) -> tuple[tuple[Sums, Sums], PyTree]:
            client, everyone = before
            place, begins = self._owner[tile], (tile == 0) | (self._owner[tile] != self._owner[tile - 1])
            scores = self._tile(own if common else tree.gather(own, place), place, tile)
            client = jax.tree.map(lambda sum: jnp.where(begins, 0, sum).astype(sum.dtype), client)
            client = client.add((scores.loss, scores.count, scores.sums))
            return (client, everyone.add(self._of_all(scores))), (Each(*client.total), scores.samples, scores.keep)

        like, tiles = self._like, jnp.arange(len(self._owner), dtype=jnp.int32)
        nothing = Sums.like((like.loss, like.count, like.sums)), Sums.like(self._of_all(like))
        (_, everyone), (each, kept, keep) = jax.lax.scan(step, nothing, tiles)
        # A client's numbers are complete after its last tile; a client without a tile has none.
        last = jnp.where(self._count > 0, self._end - 1, len(tiles))
        each = jax.tree.map(lambda leaf: jnp.append(leaf, jnp.zeros_like(leaf[:1]), axis=0)[last], each)
        return each, self.pool(Progress(everyone, kept, keep if kept else None))

    def pool(self, after: Progress) -> Pool:
        """The numbers of all clients' samples."""
        count, sums = after.pool.total
        together = {name: values for name, values in after.kept.items() if name in self._pooled}
        apart = {name: values for name, values in after.kept.items() if name not in self._pooled}
        return Pool(count, sums, together, apart, after.keep, None if after.keep is None else self._owner)


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
