"""Samples on the device: all clients' stored samples, or the generator that computes a client's when used."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from idiolect.core.aligned import is_aligned
from idiolect.data.federated import GeneratedSplit, Maker, Split

Rows = tuple[Shaped[Array, "n ..."], Shaped[Array, "n"], Int[Array, ""]]


class Arrays(NamedTuple):
    """One stored split on the device: flat samples, each client's first row and number of rows.

    total: the number of all samples, computed once. outputs: each client's number of classes if clients number their
    own classes.
    """

    x: Array
    y: Array
    starts: Int[Array, "clients"]
    sizes: Int[Array, "clients"]
    total: Float[Array, ""]
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


def to_device(split: Split | GeneratedSplit) -> Samples:
    """Move a split to the device, once for all simulations; it is cached as long as the split exists.

    On a CPU, arrays aligned to 64 bytes are shared without a copy, and become read-only.
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
    for array in (split.x, split.y, starts, sizes, outputs):
        if array is not None and is_aligned(array):
            array.flags.writeable = False
    x, y, starts, sizes, outputs = jax.device_put((split.x, split.y, starts, sizes, outputs), may_alias=True)
    return Arrays(x, y, starts, sizes, total, outputs)
