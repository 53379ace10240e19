"""Bins of features by the quantiles of all clients' rows, found by sums of counts.

The bits of a float32, read as a whole number, keep the order of the floats. Their first ones are a cell of the
number line. Each round divides at most B cells per feature into 8; clients count their rows per cell, and the server
keeps the cells that matter. After seven rounds cells are as wide as one part in 131,072 of their numbers.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from idiolect.data.schema.columns import Categories

ROUNDS = 7
"""Rounds until the cells are as narrow as they become."""
TILE = 256
"""Rows that are counted, divided into bins, or added to histograms at a time."""
_FIRST, _MORE = 8, 3  # bits of the first round's cells, and those that each further round adds
_NONE = np.uint32(0xFFFFFFFF)  # no cell
_TOP = np.uint32(0x80000000)


class Cells(NamedTuple):
    """The cells of each feature that are still divided.

    prefix: ascending leading bits, padded by a number that is no cell. below: rows in all lower cells. total: rows
    with a value. exact: whether the cells hold all rows; else they hold only the rows at the quantiles.
    """

    prefix: UInt32[Array, "features bins"]
    below: Float[Array, "features bins"]
    total: Float[Array, "features"]
    exact: Bool[Array, "features"]


def no_cells(features: int, bins: int) -> Cells:
    """Before the first round."""
    dtype = jnp.result_type(float)
    prefix = jnp.full((features, bins), _NONE, jnp.uint32)
    return Cells(prefix, jnp.zeros((features, bins), dtype), jnp.zeros(features, dtype), jnp.ones(features, bool))


def width_of(bins: int) -> int:
    """Counts per feature in a round's message."""
    return max(2**_FIRST, bins * 2**_MORE)


def _shift(round: Int[Array, ""]) -> UInt32[Array, ""]:
    """Bits that are left out in a round, from 0."""
    return (32 - _FIRST - _MORE * jnp.clip(round, 0, ROUNDS - 1)).astype(jnp.uint32)


def _ordered(x: Float[Array, "..."]) -> UInt32[Array, "..."]:
    """Whole numbers in the order of the floats; -0 is 0."""
    bits = jax.lax.bitcast_convert_type(jnp.where(x == 0, 0, x).astype(jnp.float32), jnp.uint32)
    return jnp.where(bits >= _TOP, ~bits, bits | _TOP)


def _float(ordered: UInt32[Array, "..."]) -> Float[Array, "..."]:
    """The float of a whole number, the largest one where it has none."""
    bits = jnp.where(ordered >= _TOP, ordered ^ _TOP, ~ordered)
    x, most = jax.lax.bitcast_convert_type(bits, jnp.float32), jnp.finfo(jnp.float32).max
    return jnp.clip(jnp.where(jnp.isnan(x), jnp.where(ordered >= _TOP, most, -most), x), -most, most)


def counts_of(
    cells: Cells, round: Int[Array, ""], x: Float[Array, "n features"], weight: Float[Array, "n"]
) -> Float[Array, "features width"]:
    """Count rows per divided cell; rows of weight 0, missing values and rows in no cell do not count."""
    (features, bins), shift, n = cells.prefix.shape, _shift(round), len(x)
    width = width_of(bins)

    def of_feature(prefix: Array, column: Array) -> Array:
        number = _ordered(column)
        parent = number >> (shift + jnp.uint32(_MORE))
        place = jnp.minimum(jnp.searchsorted(prefix, parent), bins - 1)
        inside = jnp.where(round == 0, True, prefix[place] == parent)
        fine = number >> shift
        index = jnp.where(round == 0, fine, place.astype(jnp.uint32) * 2**_MORE + (fine & (2**_MORE - 1)))
        return jnp.where(inside & ~jnp.isnan(column), index.astype(jnp.int32), features * width)

    first = jnp.arange(features, dtype=jnp.int32)[:, None] * width

    def add(tile: Array, counts: Array) -> Array:
        rows, at = _tile(tile, n)
        index = jnp.minimum(first + jax.vmap(of_feature)(cells.prefix, x[at].T), features * width)
        of_rows = jnp.broadcast_to(jnp.where(rows < n, weight[at], 0), index.shape)
        return counts.at[index].add(of_rows, mode="drop")

    used = jnp.max(jnp.where(weight > 0, jnp.arange(n) + 1, 0), initial=0)  # no padding
    counts = jax.lax.fori_loop(0, -(-used // TILE), add, jnp.zeros(features * width, weight.dtype))
    return counts.reshape(features, width)


def _tile(tile: Int[Array, ""], n: int) -> tuple[Int[Array, "tile"], Int[Array, "tile"]]:
    """(the numbers of a tile's rows, the same up to the last row of n)."""
    rows = tile * TILE + jnp.arange(TILE, dtype=jnp.int32)
    return rows, jnp.minimum(rows, n - 1)


def refined(cells: Cells, round: Int[Array, ""], counts: Float[Array, "features width"]) -> Cells:
    """The cells to divide next: all that hold rows if these are at most B, else those with the quantiles j / B."""
    bins, width = cells.prefix.shape[1], counts.shape[1]
    index = jnp.arange(width, dtype=jnp.uint32)

    def of_feature(cells: Cells, count: Array) -> Cells:
        parent = jnp.minimum(index >> jnp.uint32(_MORE), bins - 1).astype(jnp.int32)
        inside = (cells.prefix[parent] << jnp.uint32(_MORE)) | (index & (2**_MORE - 1))
        fine = jnp.where(round == 0, index, inside)
        running = jnp.cumsum(count) - count
        lower = jnp.where(round == 0, running, cells.below[parent] + running - running[parent * 2**_MORE])
        total = jnp.where(round == 0, jnp.sum(count), cells.total)
        exact = cells.exact & (jnp.sum(count > 0) <= bins)
        # The first and the last j whose row j n / B is in the cell. Such ranks are multiples of 1 / B, so that
        # adding half of that hides the rounding of the division.
        share, half = bins / jnp.maximum(total, 1), 0.5 / bins
        first = jnp.floor((lower + half) * share) + 1
        last = jnp.floor((lower + count + half) * share)
        kept = (count > 0) & (exact | (first <= jnp.minimum(last, bins - 1)))
        (place,) = jnp.nonzero(kept, size=bins, fill_value=width)
        prefix = jnp.where(place < width, fine[jnp.minimum(place, width - 1)], _NONE)
        below = jnp.where(place < width, lower[jnp.minimum(place, width - 1)], 0)
        return Cells(prefix, below, total, exact)

    return jax.vmap(of_feature)(cells, counts)


def edges_of(cells: Cells, round: Int[Array, ""] | int = ROUNDS - 1) -> Float[Array, "features edges"]:
    """The upper ends of all bins but the last, ascending, padded by the largest number.

    Exact cells: between neighbouring values. Else: the quantiles j / B, each the least value that j / B of the rows
    do not exceed, up to the width of a cell.
    """
    shift, most = _shift(jnp.asarray(round)), jnp.finfo(jnp.float32).max
    used = cells.prefix != _NONE
    low = _float(cells.prefix << shift)
    high = _float((cells.prefix << shift) | ((jnp.uint32(1) << shift) - jnp.uint32(1)))
    between = 0.5 * high[:, :-1] + 0.5 * low[:, 1:]
    between = jnp.where(between < low[:, 1:], between, high[:, :-1])  # neighbouring floats have none between them
    edges = jnp.where(
        cells.exact[:, None], jnp.where(used[:, 1:], between, most), jnp.where(used, high, most)[:, :-1]
    )
    return edges.astype(jnp.result_type(float))


def binned(edges: Float[Array, "features edges"], x: Float[Array, "n features"]) -> Array:
    """Each row's bins, (features, n) uint8: the number of edges below the value; missing: the number of bins."""
    missing = edges.shape[1] + 1
    place = jax.vmap(lambda e, column: jnp.searchsorted(e, column, side="left"))(edges, x.T)
    return jnp.where(jnp.isnan(x.T), missing, place).astype(jnp.uint8)


def with_categories(bins: Array, x: Float[Array, "n features"], categories: Categories, missing: int) -> Array:
    """The bins (features, n) of rows, where the first feature of each of these columns has its category as its bin.

    Its other features have one bin, so that no tree splits by them. missing: the bin of rows without a category.
    """
    for first, count in categories:
        has = x[:, first : first + count] > 0.5
        code = jnp.where(jnp.any(has, axis=1), jnp.argmax(has, axis=1), missing).astype(bins.dtype)
        bins = bins.at[first : first + count].set(0).at[first].set(code)
    return bins
