"""Predict any rows, each row by the model of its own client."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from idiolect.client.objective import Objective
from idiolect.client.samples import Tiles
from idiolect.core import tree

ROWS = 32
"""Rows per tile. The number is fixed, so a row's outputs do not depend on which other rows are predicted with it."""


def outputs_of(
    objective: Objective, models: PyTree, owners: Int[np.ndarray, "n"], x: Float[np.ndarray, "n ..."]
) -> tuple[Float[np.ndarray, "n ..."], Float[np.ndarray, "n"]]:
    """Predict every row by the model of its owner.

    Returns (outputs, usable): outputs (n, outputs), or (n,) for a model with a scalar output; usable is 1 where the
    model can use the row, else 0.

    objective: its module makes the models. models: parameters or `Predictor`s of all clients, leaves (clients, ...).
    owners: the model of each row. x: features, (n, *feature_shape) float32.
    """
    order = np.argsort(owners, kind="stable")
    sizes = np.bincount(owners, minlength=len(jax.tree.leaves(models)[0]))
    tiles = Tiles.cut(np.cumsum(sizes) - sizes, sizes, ROWS)
    count = len(tiles.owner)
    filled = 1 << max(count - 1, 0).bit_length()  # few different numbers of tiles: few programs
    place = np.minimum(np.asarray(tiles.first)[:, None] + np.arange(ROWS), len(order) - 1)
    rows = x[order[np.pad(place, ((0, filled - count), (0, 0)))]]
    owner = np.pad(tiles.owner, (0, filled - count))
    outputs, usable = _by_tile(objective, models, jnp.asarray(owner), jnp.asarray(rows))
    valid = np.arange(ROWS) < np.asarray(tiles.size)[:, None]

    def in_order(values: Array) -> np.ndarray:
        by_row = np.asarray(values)
        result = np.empty((len(x), *by_row.shape[2:]), by_row.dtype)
        result[order] = by_row[:count][valid]
        return result

    return in_order(outputs), in_order(usable)


@eqx.filter_jit
def _by_tile(
    objective: Objective, models: PyTree, owners: Int[Array, "tiles"], x: Float[Array, "tiles rows ..."]
) -> tuple[Float[Array, "tiles rows ..."], Float[Array, "tiles rows"]]:
    def one(tile: tuple[Array, Array]) -> tuple[Array, Array]:
        model = tree.gather(models, tile[0])
        return objective.outputs(model, tile[1]), objective.usable(model, tile[1])

    return jax.lax.map(one, (owners, x))
