"""What a method sees of ONE client: its objective, its training samples, mini-batches and gradients."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike, Float, Int, PRNGKeyArray, PyTree, Shaped

from idiolect.client.objective import Batch, Objective
from idiolect.client.samples import TILE, equal_tiles
from idiolect.core import tree
from idiolect.core.random import permuted
from idiolect.core.tree import Params

BatchOrder = Literal["fresh", "epoch", "cyclic"]
BATCH_ORDERS: tuple[BatchOrder, ...] = ("fresh", "epoch", "cyclic")


class Together(NamedTuple):
    """Devices that compute one client together: a mesh axis of so many of them.

    Each computes a part of the rows of a gradient, and the parts are added up. Gradients of fewer than `least` rows
    are not divided: every device computes them in whole.
    """

    axis: str
    devices: int
    least: int

    def part(self, rows: int) -> int:
        """Rows of one device's part of so many rows; the last parts may be padded."""
        return -(-rows // self.devices)

    def place(self) -> Int[Array, ""]:
        """This device's number among them."""
        return jax.lax.axis_index(self.axis)

    def sum(self, parts: PyTree) -> PyTree:
        """Add up the devices' parts, all leaves in one exchange."""
        flat, restore = ravel_pytree(parts)
        return restore(jax.lax.psum(flat, self.axis))


class Federation(eqx.Module):
    """What the server announces to all clients.

    clients: N; samples: training samples of all clients; cohort: S, the expected number of clients per round.
    capacity: an upper bound of any client's training samples. tile: the most rows of one gradient computation.
    sizes: ascending capacities, each large enough for a larger share of the clients, for which `span.by_size`
    compiles separate programs; empty if clients are batched (vmap) in one program.
    together: the devices that compute one client together, if there are several.
    """

    samples: Float[Array, ""]
    clients: int = eqx.field(static=True)
    cohort: float = eqx.field(static=True)
    capacity: int = eqx.field(static=True)
    tile: int = eqx.field(static=True, default=TILE)
    sizes: tuple[int, ...] = eqx.field(static=True, default=())
    together: Together | None = eqx.field(static=True, default=None)

    def dividing(self, rows: int) -> Together | None:
        """The devices that divide a computation on so many rows, if any do."""
        return self.together if self.together is not None and rows >= self.together.least else None


class Client(eqx.Module):
    """One client in one round. Rows `start : start + size` of the flat arrays are its training samples.

    In a simulation the arrays hold all clients' samples and only (start, size, id) differ between clients; on a real
    client they hold its own and start = 0. A method uses only the functions below and does not depend on which.
    outputs: K_i, the client's number of classes if clients number their own classes, else None.
    """

    x: PyTree[Shaped[Array, "n ..."]]
    y: Shaped[Array, "n"]
    start: Int[Array, ""]
    size: Int[Array, ""]
    id: Int[Array, ""]
    round: Int[Array, ""]
    objective: Objective
    federation: Federation
    outputs: Int[Array, ""] | None = None

    @property
    def tile(self) -> int:
        """Rows of a tile of full-batch computations: the capacity divided into equal tiles."""
        return equal_tiles(self.federation.capacity, self.federation.tile)

    @property
    def together(self) -> Together | None:
        """The devices that divide the client's samples, if any do."""
        return self.federation.dividing(self.federation.capacity)

    @property
    def undivided(self) -> "Client":
        """The client, computed by one device: for methods that differentiate `grad` backwards (`jax.grad`)."""
        return replace(self, federation=replace(self.federation, together=None))

    def take(self, position: Int[Array, "b"]) -> Batch:
        """The client's samples at these positions; positions outside 0..size-1 get weight 0."""
        inside = (position >= 0) & (position < self.size)
        rows = self.start + jnp.where(inside, position, 0)
        weight = inside.astype(jnp.result_type(float))
        return Batch(jax.tree.map(lambda a: a[rows], self.x), self.y[rows], weight, self.outputs)

    def draw(self, key: PRNGKeyArray, batch_size: int) -> Batch:
        """A fresh mini-batch, uniform without replacement; all samples if the client has fewer."""
        return self.take(permuted(key, jnp.arange(batch_size), self.size))._replace(
            weight=(jnp.arange(batch_size) < self.size).astype(jnp.result_type(float))
        )

    def passes(self, batch_size: int) -> Int[Array, ""]:
        """Mini-batches in one pass over the data, including a short last one: ceil(size / batch_size)."""
        return jnp.maximum((self.size + batch_size - 1) // batch_size, 1)

    def batch(self, key: PRNGKeyArray, step: ArrayLike, batch_size: int, order: BatchOrder, steps: int = 0) -> Batch:
        """The mini-batch of local step `step` in a round of `steps`.

        fresh: an independent draw at each step, without replacement inside the batch.
        epoch: passes over the data, reshuffled for each pass; the last batch of a pass may be short.
        cyclic: a fixed order without shuffling that continues across rounds (step r of round t takes batch
            t * steps + r, modulo the number of batches); the last batch may be short. As pFedMe's published code.
        """
        if order == "fresh":
            return self.draw(jax.random.fold_in(key, step), batch_size)
        per_pass = self.passes(batch_size)
        within = jnp.arange(batch_size)
        if order == "cyclic":
            return self.take(((self.round * steps + step) % per_pass) * batch_size + within)
        position = (step % per_pass) * batch_size + within
        index = permuted(jax.random.fold_in(key, step // per_pass), position, self.size)
        return self.take(jnp.where(position < self.size, index, -1))

    def batches(self, key: PRNGKeyArray, steps: int, batch_size: int, order: BatchOrder) -> Batch:
        """All mini-batches of a round, see `batch`; leaves (steps, batch, ...)."""
        return jax.vmap(lambda step: self.batch(key, step, batch_size, order, steps))(jnp.arange(steps))

    def window(self, first: ArrayLike, size: ArrayLike) -> "Client":
        """The client with only the samples at positions first..first+size-1."""
        return replace(self, start=self.start + first, size=jnp.asarray(size, self.size.dtype))

    def shuffled(self, key: PRNGKeyArray) -> "Client":
        """The client with its samples in the random order given by `key`."""

        def samples(position: Int[Array, "b"]) -> tuple[PyTree, Array]:
            shuffled = self.take(permuted(key, position, self.size))
            return shuffled.x, shuffled.y

        x, y = self.collect(samples)
        return replace(self, x=x, y=y, start=jnp.zeros_like(self.start))

    def collect(self, rows: Callable[[Int[Array, "b"]], PyTree[Shaped[Array, "b ..."]]]) -> PyTree:
        """rows(positions) for all samples of the client, computed tile by tile.

        Leaves (capacity rounded up to whole tiles, ...); only tiles with samples are computed, the rest is zero.
        """
        together, capacity = self.together, self.federation.capacity
        devices, place = (1, 0) if together is None else (together.devices, together.place())
        tile = equal_tiles(-(-capacity // devices), self.federation.tile)
        tile_shapes = jax.eval_shape(rows, jnp.arange(tile))
        tiles = -(-capacity // (tile * devices))  # of each device, which takes every `devices`-th tile
        zeros = jax.tree.map(lambda a: jnp.zeros((tiles, *a.shape), a.dtype), tile_shapes)

        def write(index: Array, rows_so_far: PyTree) -> PyTree:
            part = rows((index * devices + place) * tile + jnp.arange(tile))
            return jax.tree.map(lambda a, b: jax.lax.dynamic_update_index_in_dim(a, b, index, 0), rows_so_far, part)

        end = (self.size - place * tile + devices * tile - 1) // (devices * tile)
        found = jax.lax.fori_loop(0, end, write, zeros)
        if together is not None:
            found = jax.tree.map(lambda a: jax.lax.all_gather(a, together.axis, axis=1), found)
        return jax.tree.map(lambda a, b: a.reshape(-1, *b.shape[1:]), found, tile_shapes)

    def own_part(self) -> "Client":
        """The client with only the samples of this device; with all, unless several devices divide them."""
        together, federation = self.together, self.federation
        if together is None:
            return self
        each = (self.size + together.devices - 1) // together.devices
        first = jnp.minimum(together.place() * each, self.size)
        part = self.window(first, jnp.minimum(each, self.size - first))
        return replace(part, federation=replace(federation, capacity=together.part(federation.capacity)))

    def answered(self, params: Params) -> Float[Array, ""]:
        """The number of the client's training samples that the model can answer, see `Objective.selective`."""
        if not self.objective.selective:
            return self.size.astype(jnp.result_type(float))
        mine = self.own_part()
        tile = mine.tile

        def add(index: Array, count: Array) -> Array:
            part = mine.take(index * tile + jnp.arange(tile))
            return count + jnp.sum(self.objective.answered(params, part).weight)

        return self._total(jax.lax.fori_loop(0, mine.passes(tile), add, jnp.zeros((), jnp.result_type(float))))

    def _total(self, parts: PyTree) -> PyTree:
        """The sum of what the devices found in their `own_part`."""
        return parts if self.together is None else self.together.sum(parts)

    def loss(self, params: Params, batch: Batch) -> Float[Array, ""]:
        """f_i on a mini-batch, L2 included."""
        return self.objective.loss(params, batch)

    def full_loss(self, params: Params) -> Float[Array, ""]:
        """f_i on all the client's training samples, L2 included, tile by tile, without a gradient."""
        mine = self.own_part()
        tile = mine.tile

        def add(index: Array, total: tuple[Array, Array]) -> tuple[Array, Array]:
            part = self.objective.answered(params, mine.take(index * tile + jnp.arange(tile)))
            value = self.objective.output_loss(self.objective.outputs(params, part.x), part)
            return total[0] + value.astype(total[0].dtype), total[1] + jnp.sum(part.weight)

        nothing = jnp.zeros((), jnp.result_type(float))
        value, count = self._total(jax.lax.fori_loop(0, (mine.size + tile - 1) // tile, add, (nothing, nothing)))
        return value / jnp.maximum(count, 1) + self.objective.penalty(params)

    def grad(self, params: Params, batch: Batch | None, fixed: Params | None = None) -> Params:
        """Gradient of f_i with respect to `params` on a mini-batch, or on all the client's samples if it is None.

        fixed: the model's other parameters, if `params` is a partial tree.
        """
        if batch is None:
            return self.full_value_and_grad(params, fixed)[1]
        rows, mine = batch.weight.shape[0], batch
        together = self.federation.dividing(rows)
        if together is not None:
            rows = together.part(rows)
            mine = tree.gather(batch.tiles(rows, together.devices), together.place())
        elif rows <= self.federation.tile:
            return jax.grad(lambda p: self.objective.loss(tree.merged(p, fixed), batch))(params)
        tile = equal_tiles(rows, self.federation.tile)
        parts = mine.tiles(tile)
        return self._over_tiles(params, fixed, lambda i: tree.gather(parts, i), tile, rows, together)[1]

    def full_value_and_grad(
        self, params: Params, fixed: Params | None = None, tile: int | None = None
    ) -> tuple[Float[Array, ""], Params]:
        """f_i and its gradient on all the client's training samples, tile by tile; `fixed` as in `grad`."""
        mine = self.own_part()
        tile = tile or mine.tile

        def batch(index: Int[Array, ""]) -> Batch:
            return mine.take(index * tile + jnp.arange(tile))

        return self._over_tiles(params, fixed, batch, tile, mine.size, self.together)

    def _over_tiles(
        self,
        params: Params,
        fixed: Params | None,
        batch: Callable[[Int[Array, ""]], Batch],
        tile: int,
        rows: int | Int[Array, ""],
        together: Together | None,
    ) -> tuple[Float[Array, ""], Params]:
        """f_i and its gradient: (1/n) times the sum of the losses of tiles, plus the L2 term.

        batch: the number of a tile -> its samples; rows: of all tiles; n: those that the model can answer, usually
        all. together: the devices that have their own tiles each; the sum is over those of all.
        """

        def loss(params: Params, part: Batch) -> Float[Array, ""]:
            return self.objective.data_loss(tree.merged(params, fixed), part)

        def add(index: Array, total: tuple[Array, Array, Params]) -> tuple[Array, Array, Params]:
            part = batch(index)
            value, gradient = jax.value_and_grad(loss)(params, part)
            count = jnp.sum(self.objective.answered(tree.merged(params, fixed), part).weight)
            return total[0] + value, total[1] + count, tree.add_scaled(total[2], 1.0, gradient)

        nothing = jnp.zeros((), jnp.result_type(float))
        start = (nothing, nothing, jax.tree.map(jnp.zeros_like, params))
        if together is not None:
            # JAX would count the derivative of a sum once for each device. It refuses to go backwards through a loop
            # if it does not know the number of steps; forwards the derivative is right.
            rows = jax.lax.optimization_barrier(jnp.asarray(rows))
        parts = jax.lax.fori_loop(0, (rows + tile - 1) // tile, add, start)
        value, count, gradient = parts if together is None else together.sum(parts)
        scale = 1.0 / jnp.maximum(count, 1)
        penalty, slope = jax.value_and_grad(lambda p: self.objective.penalty(tree.merged(p, fixed)))(params)
        mean = jax.tree.map(lambda g, p: g * scale.astype(g.dtype) + p, gradient, slope)
        return value * scale + penalty, mean
