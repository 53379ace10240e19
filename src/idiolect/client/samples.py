"""Samples on the device, stored or generated when used; and tiles, which compute a fixed number of rows at a time."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree, Shaped

from idiolect.client.objective import Objective
from idiolect.core.jaxpr import Traced
from idiolect.core.memory import aligned_empty, is_aligned, is_mapped
from idiolect.data.federated import GeneratedSplit, Maker, Split
from idiolect.models.conv import correlate_p, patch_size

Rows = tuple[Shaped[Array, "n ..."], Shaped[Array, "n"], Int[Array, ""]]


class Arrays(NamedTuple):
    """One stored split on the device: flat samples, each client's first row and number of rows.

    total: the number of all samples, computed once. rows: those that hold samples; spare ones may follow them.
    outputs: each client's number of classes if clients number their own classes.
    """

    x: Array
    y: Array
    starts: Int[Array, "clients"]
    sizes: Int[Array, "clients"]
    total: Float[Array, ""]
    rows: Int[Array, ""]
    outputs: Int[Array, "clients"] | None = None

    def of(self, client_id: Int[Array, ""]) -> Rows:
        """(x, y, first row): the arrays with the client's samples and the first of its rows."""
        return self.x, self.y, self.starts[client_id]

    @property
    def pool(self) -> tuple[Array, Array]:
        """The arrays of all clients' samples."""
        return self.x, self.y


class Generated(eqx.Module):
    """One generated split, with the interface of `Arrays`; only the sizes are stored."""

    maker: Maker
    sizes: Int[Array, "clients"]
    total: Float[Array, ""]
    outputs: None = None

    @property
    def rows(self) -> int:
        """The rows of any client."""
        return self.maker.capacity

    def of(self, client_id: Int[Array, ""]) -> Rows:
        """(x, y, first row): the client's generated samples, from row 0."""
        return *self.maker.samples(client_id), jnp.zeros((), jnp.int32)

    @property
    def pool(self) -> Maker:
        """The generator of all clients' samples."""
        return self.maker


Samples = Arrays | Generated
_on_device: "WeakKeyDictionary[Split | GeneratedSplit, Samples]" = WeakKeyDictionary()


def total_of(sizes: Int[np.ndarray, "clients"]) -> Float[Array, ""]:
    """The number of all clients' samples, as a float."""
    return jnp.asarray(int(sizes.sum()), jnp.result_type(float))


COPIED = 2**26
"""The most bytes of features that are copied to get spare rows."""


def to_device(split: Split | GeneratedSplit) -> Samples:
    """Move a split to the device, once for all simulations; it is cached as long as the split exists.

    Features of at most `COPIED` bytes that no file holds are copied and get spare rows, see `roomy`. On a CPU, all
    others that are aligned to 64 bytes are shared without a copy, and become read-only.
    """
    if split not in _on_device:
        with jax.ensure_compile_time_eval():  # a concrete array even if called while tracing
            _on_device[split] = _moved(split)
    return _on_device[split]


def _moved(split: Split | GeneratedSplit) -> Samples:
    sizes, total = split.sizes.astype(np.int32), total_of(split.sizes)
    if isinstance(split, GeneratedSplit):
        return Generated(split.maker, jax.device_put(sizes), total)
    starts = split.starts.astype(np.int32)
    outputs = None if split.outputs is None else split.outputs.astype(np.int32)
    copied = split.x.nbytes <= COPIED and not is_mapped(split.x)
    x, y = (with_spare_rows(a) if copied else a for a in (split.x, split.y))
    for array in (x, y, starts, sizes, outputs):
        if array is not None and is_aligned(array):
            array.flags.writeable = False
    x, y, starts, sizes, outputs = jax.device_put((x, y, starts, sizes, outputs), may_alias=True)
    return Arrays(x, y, starts, sizes, total, jnp.asarray(split.count, jnp.int32), outputs)


def roomy(rows: int, parts: int = 4) -> int:
    """The least number, of at least `rows`, that is parts, parts + 1, .. or 2 parts - 1 times a power of two.

    It is less than rows (1 + 1 / parts). Programs are compiled for so many rows, so that data of about the same size
    have the same programs.
    """
    step = 2 ** max(rows.bit_length() - parts.bit_length(), 0)
    return -(-rows // step) * step


def with_spare_rows(array: Shaped[np.ndarray, "n ..."]) -> Shaped[np.ndarray, "m ..."]:
    """The array with rows of zeros after its own, `roomy` in all."""
    wide = aligned_empty((roomy(len(array)), *array.shape[1:]), array.dtype)
    wide[: len(array)], wide[len(array) :] = array, 0
    return wide


TILE = 256  # the most rows of a tile
CACHE = 2**22
"""The most bytes of a tile's largest intermediate value on a CPU.

Measured on one core of an EPYC with 32 MB of cache and PFLEGO's network for Omniglot, whose patches take 0.45 MB a
sample: an exact gradient over 64 samples takes 99 ms in one tile, 83 in tiles of 32 samples, 71 of 16, 68 of 8,
73 of 4.
"""


def most_rows(objective: Objective, params: PyTree, sample: PyTree) -> int:
    """The most rows of a tile whose largest intermediate value still fits in a CPU's cache; `TILE` on other devices.

    params: the parameters, and sample: one sample's arrays; or their shapes.
    """
    if jax.default_backend() != "cpu":
        return TILE

    def outputs(params: PyTree, _: None, x: PyTree) -> Array:
        return eqx.combine(params, objective.static)(x)

    traced = Traced(outputs, params, None, sample)
    sizes = [aval.size * aval.dtype.itemsize for aval in traced.avals.values()]
    for step in traced.steps:
        if step.primitive is correlate_p and isinstance(images := step.inputs[0], int) and images in traced.varies:
            made = traced.avals[step.outputs[0]]  # its patches are made and used inside
            sizes.append(patch_size(traced.avals[images].shape, made.shape) * made.dtype.itemsize)
    widest = max(sizes)
    return min(max(CACHE // max(widest, 1), 1), TILE)


def operations_a_row(objective: Objective, params: PyTree, sample: PyTree) -> float:
    """XLA's count of the floating-point operations of a gradient, for each of its rows.

    params: the parameters, and sample: one sample's arrays; or their shapes. Loops of the model count as one step.
    """
    rows = 8  # so that what is done once for all rows counts little

    def total(params: PyTree, x: PyTree) -> Array:
        return jnp.sum(objective.outputs(params, x))

    x = jax.tree.map(lambda a: jax.ShapeDtypeStruct((rows, *a.shape), a.dtype), sample)
    counted: Any = jax.jit(jax.grad(total)).lower(params, x).cost_analysis()
    return float(counted.get("flops", 0.0)) / rows


def equal_tiles(rows: int, most: int) -> int:
    """The tile size that divides so many rows into equal tiles: as few as possible, of at most `most` rows."""
    rows = max(rows, 1)
    return -(-rows // -(-rows // most))


class Tiles(eqx.Module):
    """A split in tiles of at most `rows` rows of one client: each tile's client, first row and number of rows."""

    owner: Int[Array | np.ndarray, "tiles"]
    first: Int[Array | np.ndarray, "tiles"]
    size: Int[Array | np.ndarray, "tiles"]
    rows: int = eqx.field(static=True)

    @classmethod
    def cut(
        cls,
        starts: Int[np.ndarray, "clients"],
        sizes: Int[np.ndarray, "clients"],
        rows: int,
        most: Int[np.ndarray, "clients"] | None = None,
    ) -> "Tiles":
        """Tiles of at most `rows` rows, padded with empty ones to the number that clients of `most` samples need."""
        counts = -(-sizes // rows)
        owner = np.repeat(np.arange(len(counts)), counts)
        nth = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        first, size = starts[owner] + nth * rows, np.minimum(rows, sizes[owner] - nth * rows)
        extra = 0 if most is None else int((-(-most // rows)).sum()) - len(owner)
        owner, first, size = (np.pad(part, (0, extra)).astype(np.int32) for part in (owner, first, size))
        return cls(owner, first, size, rows)

    def of(self, begin: int, end: int, length: int) -> "Tiles":
        """The tiles of the clients begin..end-1, renumbered from 0 and padded with empty ones to `length`."""
        low, high = np.searchsorted(self.owner, [begin, end])
        owner, first, size = (np.zeros(length, np.int32) for _ in range(3))
        owner[: high - low] = self.owner[low:high] - begin
        first[: high - low], size[: high - low] = self.first[low:high], self.size[low:high]
        return Tiles(owner, first, size, self.rows)

    def parts(self, edges: Sequence[int], length: int) -> "Tiles":
        """The tiles of each group of clients edges[i]..edges[i + 1] - 1, see `of`; leaves (groups, length)."""
        parts = [self.of(a, b, length) for a, b in pairwise(edges)]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *parts)

    def most(self, edges: Sequence[int]) -> int:
        """The largest number of tiles of any group of clients, see `parts`."""
        return int(np.diff(np.searchsorted(self.owner, edges)).max())


def capacities(sizes: Int[np.ndarray, "clients"], most: int) -> tuple[int, ...]:
    """Ascending capacities for the smallest quarter, half, three quarters and all clients; near ones are left out.

    most: the capacity of all. The others are multiples of 8.
    """
    ascending = [most]
    for share in (0.75, 0.5, 0.25):
        rows = -(-int(np.quantile(sizes, share, method="higher")) // 8) * 8
        if 0 < rows < 0.95 * ascending[0]:
            ascending.insert(0, rows)
    return tuple(ascending)


def tiles_of(
    split: Split | GeneratedSplit, tile: int, clients: Int[np.ndarray, "chosen"] | slice = slice(None)
) -> Tiles:
    """The tiles of a split's clients (all by default), of at most `tile` rows and about the largest client's."""
    sizes = split.sizes[clients]
    held = split.maker.capacity if isinstance(split, GeneratedSplit) else split.count
    return Tiles.cut(split.starts[clients], sizes, max(min(tile, roomy(int(sizes.max()), 8), held), 1))
