"""The mixing step of graph methods: each client's model moves towards its neighbours' models."""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from idiolect.core import tree
from idiolect.core.linalg import solve_unit_lower
from idiolect.core.tree import Params
from idiolect.graphs.graph import Graph

NEIGHBOURS = 8  # neighbours whose models are read at once
ROWS = 8  # clients whose neighbours are visited in parallel
# Measured on one core with models of 7,850 parameters: a pair costs 30 times less in a matrix product than in a
# visit, which must fetch the neighbour's model.
RATIO = 32
FEW = 64  # cohort size up to which the dense product is always used


def pull(own: Params, others: Params, weights: Float[Array, "others"]) -> Params:
    """sum_l a_l (own - others_l), one client's row of L W. others: the neighbours' models, leaves (others, ...)."""

    def leaf(w: Array, x: Array) -> Array:
        a = weights.astype(w.dtype)
        # The two terms nearly cancel: a product rounded to fewer bits (TF32, bfloat16) would leave noise.
        return jnp.sum(a) * w - jnp.tensordot(a, x, axes=1, precision=jax.lax.Precision.HIGHEST)

    return jax.tree.map(leaf, own, others)


def mixed(own: Params, others: Params, weights: Float[Array, "others"], step: ArrayLike) -> Params:
    """Return own - step sum_l a_l (own - others_l), one client's model after the mixing step."""
    return tree.add_scaled(own, -jnp.asarray(step), pull(own, others, weights))


class Links(eqx.Module):
    """A graph's arrays, see `Graph`, as a part of a method's state. widest: the largest number of neighbours."""

    offsets: Int[Array, "clients_plus_1"]
    neighbours: Int[Array, "entries"]
    weights: Float[Array, "entries"]
    hub: Float[Array, "clients"] | None
    widest: int = eqx.field(static=True)

    @property
    def clients(self) -> int:
        """Number of clients N, without the hub."""
        return self.offsets.shape[0] - 1


def links(graph: Graph) -> Links:
    """A graph's arrays on the device."""
    real = jnp.result_type(float)
    return Links(
        jnp.asarray(graph.offsets, jnp.int32),
        jnp.asarray(graph.neighbours, jnp.int32),
        jnp.asarray(graph.weights, real),
        None if graph.hub is None else jnp.asarray(graph.hub, real),
        int(np.diff(graph.offsets).max()),
    )


class Around(NamedTuple):
    """A graph's arrays, and each client's row in the cohort.

    rows: (N,) the client's row in the cohort, `count` if it is not in it; to_hub: (count,), 0 for padding.
    """

    offsets: Int[Array, "clients_plus_1"]
    neighbours: Int[Array, "entries"]
    weights: Float[Array, "entries"]
    rows: Int[Array, "clients"]
    ids: Int[Array, "count"]
    to_hub: Float[Array, "count"] | None

    def entries(
        self, client: Int[Array, "*s"], nth: Int[Array, "*t"]
    ) -> tuple[Int[Array, "..."], Float[Array, "..."]]:
        """(row in the cohort, weight) of a client's nth neighbours; (count, 0) for those outside the cohort."""
        entry = self.offsets[client] + nth
        real = entry < self.offsets[client + 1]
        entry = jnp.where(real, entry, 0)
        count = self.ids.shape[0]
        row = jnp.where(real, self.rows[self.neighbours[entry]], count)
        return row, jnp.where(row < count, self.weights[entry], 0)


def mix(
    graph: Graph | Links,
    ids: Int[Array, "count"],
    present: Bool[Array, "count"],
    models: Params,
    step: ArrayLike,
    *,
    in_place: bool = False,
    dense: bool | None = None,
) -> Params:
    """Do the mixing step W - step L W among a cohort, on the subgraph of its clients.

    Costs the cohort's edges times the parameters in time, and the models' size in memory.

    Args:
        ids: The cohort's client numbers.
        present: False for padding rows.
        models: Leaves (count, ...). With a hub, `models` and the result have one more row, the hub's.
        in_place: False updates all models at once; True one after the other in ascending order of client numbers, the
            hub last, each with the earlier updates (Gauss-Seidel).
        dense: Use one matrix product over all pairs instead of visiting each client's neighbours; None chooses the
            faster one.
    """
    graph = links(graph) if isinstance(graph, Graph) else graph
    count = ids.shape[0]
    real = present if graph.hub is None else jnp.append(present, True)
    # A padding row may hold any values, and 0 * inf is NaN.
    models = jax.tree.map(lambda leaf: jnp.where(real.reshape(-1, *(1,) * (leaf.ndim - 1)), leaf, 0), models)
    around = _around(graph, ids, present)
    if in_place:
        return _one_by_one(graph, around, present, models, step)
    if dense is None:
        dense = count <= max(FEW, RATIO * len(graph.neighbours) / graph.clients)
    if dense:
        return jax.vmap(mixed, in_axes=(0, None, 0, None))(models, models, _block(graph, around, present), step)
    pulled = jax.lax.map(partial(_walk, around, models), jnp.arange(count), batch_size=ROWS)
    if around.to_hub is not None:
        clients, hub = jax.tree.map(lambda leaf: leaf[:count], models), tree.gather(models, count)
        last = pull(hub, clients, around.to_hub)
        pulled = jax.tree.map(lambda leaf, row: jnp.concatenate([leaf, row[None]]), pulled, last)
    return tree.add_scaled(models, -jnp.asarray(step), pulled)


def _around(graph: Links, ids: Int[Array, "count"], present: Bool[Array, "count"]) -> Around:
    count, nowhere = ids.shape[0], graph.clients
    rows = jnp.full(graph.clients, count).at[jnp.where(present, ids, nowhere)].set(jnp.arange(count), mode="drop")
    to_hub = None if graph.hub is None else jnp.where(present, graph.hub[ids], 0)
    return Around(graph.offsets, graph.neighbours, graph.weights, rows, ids, to_hub)


def _block(graph: Links, around: Around, present: Bool[Array, "count"]) -> Float[Array, "vertices vertices"]:
    """The block of A between the cohort's clients, the hub last."""
    count = present.shape[0]
    block = jnp.zeros((count, count))
    if len(graph.neighbours):
        row, weight = around.entries(around.ids[:, None], jnp.arange(graph.widest))
        block = block.at[jnp.arange(count)[:, None], row].add(weight, mode="drop")
        block = jnp.where(present[:, None], block, 0)
    if around.to_hub is None:
        return block
    edge = around.to_hub
    return jnp.block([[block, edge[:, None]], [edge[None], jnp.zeros((1, 1))]])


def _walk(around: Around, models: Params, row: Int[Array, ""]) -> Params:
    """`pull` of one client of the cohort, visiting its neighbours a few at a time."""
    own, count = tree.gather(models, row), around.ids.shape[0]
    total = jax.tree.map(jnp.zeros_like, own)
    if around.neighbours.shape[0]:
        client = around.ids[row]
        degree = around.offsets[client + 1] - around.offsets[client]

        def add(group: Int[Array, ""], total: Params) -> Params:
            place, weight = around.entries(client, group * NEIGHBOURS + jnp.arange(NEIGHBOURS))
            others = tree.gather(models, jnp.minimum(place, count - 1))
            return tree.add_scaled(total, 1.0, pull(own, others, weight))

        total = jax.lax.fori_loop(0, (degree + NEIGHBOURS - 1) // NEIGHBOURS, add, total)
    if around.to_hub is None:
        return total
    hub = tree.gather(models, jnp.asarray([count]))
    return tree.add_scaled(total, 1.0, pull(own, hub, around.to_hub[row][None]))


def _one_by_one(
    graph: Links, around: Around, present: Bool[Array, "count"], models: Params, step: ArrayLike
) -> Params:
    """The sequential step as one triangular system: the models change by X = -step L W + step A_low X.

    L = D - A in the order of client numbers; A_low: A's strictly lower triangle.
    """
    block = _block(graph, around, present)
    order = jnp.append(jnp.argsort(around.ids), present.shape[0])[: block.shape[0]]
    block = block[order][:, order]
    laplacian = jnp.diag(block.sum(axis=1)) - block
    system = jnp.eye(len(order), dtype=block.dtype) - step * jnp.tril(block, -1)
    moves = step * solve_unit_lower(system, laplacian)
    back = jnp.argsort(order)
    moves = moves[back][:, back]

    def leaf(w: Array) -> Array:
        # Each row of `moves` sums to zero, so the terms nearly cancel: see `pull`.
        return w - jnp.tensordot(moves.astype(w.dtype), w, axes=1, precision=jax.lax.Precision.HIGHEST)

    return jax.tree.map(leaf, models)
