"""Sums and ranks of samples by client, where the samples lie in tiles of one client each."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped


def segment_sum(
    values: Shaped[Array, "tiles rows"], keep: Bool[Array, "tiles rows"], owner: Int[Array, "tiles"], clients: int
) -> Shaped[Array, "clients"]:
    """Each client's sum over the rows that count: first of a tile's rows, then of its tiles."""
    tiles = jnp.sum(jnp.where(keep, values, 0), axis=1, dtype=values.dtype)
    return jax.ops.segment_sum(tiles, owner, clients)


def spread(values: Shaped[Array, "clients"], owner: Int[Array, "tiles"]) -> Shaped[Array, "tiles 1"]:
    """Each client's value for all of its rows."""
    return values[owner][:, None]


def exact_sum(values: Int[Array, "n"], owner: Int[Array, "n"], clients: int) -> Float[Array, "clients"]:
    """Each client's sum of whole numbers from 0 to 2^30; an owner beyond the clients is nobody.

    In three limbs of 10 bits, each sum of which is exact up to 4 million numbers: int32 would overflow, and one
    float32 after the other would lose what is small beside their sum.
    """
    limbs = [jax.ops.segment_sum((values >> shift) & 1023, owner, clients) for shift in (20, 10, 0)]
    high, middle, low = (limb.astype(jnp.result_type(float)) for limb in limbs)
    return high * 2.0**20 + (middle * 2.0**10 + low)


def wins(
    score: Float[Array, "n"], positive: Bool[Array, "n"], owner: Int[Array, "n"], clients: int
) -> Float[Array, "clients"]:
    """Of each client, how many pairs of a positive and a negative sample the positive one wins; a tie is half a win.

    The Mann-Whitney U statistic, from one sort. owner: of each sample; beyond the clients: nobody's.
    """
    owner, score, positive = jax.lax.sort((owner, score, positive), num_keys=2)
    place = jnp.arange(len(score))
    client_starts = jnp.concatenate([jnp.ones(1, bool), owner[1:] != owner[:-1]])
    tie_starts = client_starts | jnp.concatenate([jnp.ones(1, bool), score[1:] != score[:-1]])
    negatives = jnp.cumsum(~positive, dtype=jnp.int32)  # up to and with each place
    before = negatives - ~positive
    # Negatives before the start of each place's client, and of its tie; they only grow, so the last is the largest.
    of_client = jax.lax.cummax(jnp.where(client_starts, before, 0))
    of_tie = jax.lax.cummax(jnp.where(tie_starts, before, 0))
    ends = jax.lax.cummin(jnp.where(jnp.append(tie_starts[1:], True), place, len(score)), reverse=True)
    lower, equal = of_tie - of_client, negatives[ends] - of_tie
    twice = jnp.where(positive, 2 * lower + equal, 0)
    return exact_sum(twice, owner, clients) / 2
