"""The outputs of many clients' models on any rows, each row by the model of its own client."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from idiolect.client.tiles import Tiles
from idiolect.core import tree

ROWS = 32
"""Rows of a tile: always as many, so that a row's outputs do not depend on which rows are asked for beside it."""


def outputs_of(
    static: PyTree, stack: PyTree, owners: Int[np.ndarray, "n"], x: Float[np.ndarray, "n ..."]
) -> Float[np.ndarray, "n ..."]:
    """The outputs for every row, (n, outputs), or (n,) for a model with a scalar output.

    static: the module without its parameters; stack: parameters of all models, leaves (models, ...); owners: the
    model of each row; x: features, (n, *feature_shape) float32.
    """
    order = np.argsort(owners, kind="stable")
    sizes = np.bincount(owners, minlength=len(jax.tree.leaves(stack)[0]))
    tiles = Tiles.cut(np.cumsum(sizes) - sizes, sizes, ROWS)
    count = len(tiles.owner)
    made = 1 << (count - 1).bit_length()  # few different numbers of tiles: few programs
    place = np.minimum(np.asarray(tiles.first)[:, None] + np.arange(ROWS), len(order) - 1)
    gathered = x[order[np.pad(place, ((0, made - count), (0, 0)))]]
    answers = np.asarray(_by_tile(static, stack, np.pad(tiles.owner, (0, made - count)), gathered))
    mine = np.arange(ROWS) < np.asarray(tiles.size)[:, None]
    found = np.empty((len(x), *answers.shape[2:]), answers.dtype)
    found[order] = answers[:count][mine]
    return found


@eqx.filter_jit
def _by_tile(static: PyTree, stack: PyTree, owners: Any, x: Any) -> Array:
    def one(tile: tuple[Array, Array]) -> Array:
        return jax.vmap(eqx.combine(tree.gather(stack, tile[0]), static))(tile[1])

    return jax.lax.map(one, (jnp.asarray(owners), jnp.asarray(x)))
