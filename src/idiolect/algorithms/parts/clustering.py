"""Divide clients into groups by the directions of their models: k-means from farthest-first seeds."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from idiolect.core.tree import Params

TRIES = 8
"""First seeds that are tried; the division with the least sum of squared distances is kept."""
TURNS = 25
"""Steps of Lloyd's algorithm from each seed. With few points it stops moving after a handful."""


def directions(models: Params, present: Bool[Array, "clients"]) -> Float[Array, "clients d"]:
    """Return u_i = (w_i - m) / ||w_i - m||, m the mean of the models that are present; 0 for absent ones.

    Two groups of clients whose relations are opposite have opposite directions, whatever all clients have in common
    and whatever the sizes of the groups. Only weights count, leaves of two axes or more, if the model has any: a
    client's own intercept would else hide its group.

    models: leaves (clients, ...).
    """
    leaves = jax.tree.leaves(models)
    weights = [leaf for leaf in leaves if leaf.ndim > 2] or leaves
    points = jnp.concatenate([leaf.reshape(len(leaf), -1) for leaf in weights], axis=1)
    points = jnp.where(present[:, None], points, 0)
    centred = jnp.where(present[:, None], points - jnp.sum(points, axis=0) / jnp.maximum(jnp.sum(present), 1), 0)
    length = jnp.linalg.norm(centred, axis=1, keepdims=True)
    return centred / jnp.where(length > 0, length, 1)


def divide(
    points: Float[Array, "clients d"],
    present: Bool[Array, "clients"],
    ids: Int[Array, "clients"],
    groups: ArrayLike,
    most: int,
) -> Float[Array, "clients most"]:
    """Divide points into `groups` groups that minimise the sum of squared distances to the group's mean.

    Lloyd's algorithm from farthest-first seeds: the first seed is given, each next one is the point farthest from all
    seeds so far. `TRIES` first seeds are tried, themselves in farthest-first order from the longest point. Nothing is
    drawn. Group 0 has the lowest of all ids, group 1 the lowest of the others, and so on: neither the order of the
    points nor rounding changes a group's number.

    present: False for padding. ids: the clients' numbers. groups: at most `most`; may be traced.
    Returns one-hot rows; 0 for padding and in the columns beyond `groups`.

    Source: Lloyd, "Least Squares Quantization in PCM", 1982; Gonzalez, "Clustering to Minimize the Maximum
    Intercluster Distance", 1985 (farthest first).
    """
    points = jnp.where(present[:, None], points, 0)
    live = jnp.arange(most) < groups

    def distances(centres: Float[Array, "k d"]) -> Float[Array, "clients k"]:
        cross = jnp.matmul(points, centres.T, precision="highest")
        return jnp.maximum(jnp.sum(points**2, axis=1)[:, None] - 2 * cross + jnp.sum(centres**2, axis=1), 0)

    def farthest_first(first: Int[Array, ""], count: int) -> Int[Array, "count"]:
        def add(place: ArrayLike, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            seeds, nearest = carry
            far = jnp.argmax(jnp.where(present, nearest, -1)).astype(seeds.dtype)
            return seeds.at[place].set(far), jnp.minimum(nearest, distances(points[far][None])[:, 0])

        start = jnp.full(count, first), distances(points[first][None])[:, 0]
        return jax.lax.fori_loop(1, count, add, start)[0]

    def nearest_of(centres: Float[Array, "k d"]) -> tuple[Float[Array, "clients k"], Float[Array, ""]]:
        far = jnp.where(live, distances(centres), jnp.inf)
        slots = jax.nn.one_hot(jnp.argmin(far, axis=1), most, dtype=points.dtype) * present[:, None]
        return slots, jnp.sum(jnp.where(present, jnp.min(far, axis=1), 0))

    def lloyd(first: Int[Array, ""]) -> tuple[Float[Array, "clients k"], Float[Array, ""]]:
        def turn(_: ArrayLike, centres: Float[Array, "k d"]) -> Float[Array, "k d"]:
            slots = nearest_of(centres)[0]
            count = jnp.sum(slots, axis=0)[:, None]
            means = jnp.matmul(slots.T, points, precision="highest") / jnp.maximum(count, 1)
            return jnp.where(count > 0, means, centres)

        return nearest_of(jax.lax.fori_loop(0, TURNS, turn, points[farthest_first(first, most)]))

    longest = jnp.argmax(jnp.where(present, jnp.sum(points**2, axis=1), -1))
    slots, costs = jax.lax.map(lloyd, farthest_first(longest, min(TRIES, len(points))))
    best = slots[jnp.argmin(costs)]
    last = jnp.iinfo(ids.dtype).max
    lowest = jnp.min(jnp.where(best > 0, ids[:, None], last - 1), axis=0)  # empty groups come last, then masked ones
    return best[:, jnp.argsort(jnp.where(live, lowest, last))]
