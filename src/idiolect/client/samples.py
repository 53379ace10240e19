"""Samples as the runtime sees them: all clients' on the device, or made from a client's number when they are used."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from idiolect.core.aligned import is_aligned
from idiolect.data.federated import Split
from idiolect.data.generated import GeneratedSplit, Maker

Rows = tuple[Shaped[Array, "n ..."], Shaped[Array, "n"], Int[Array, ""]]


class Arrays(NamedTuple):
    """One split on the device: flat samples, each client's first row, number of rows, and of classes if its own.

    total: samples of all clients, so that no round adds them up again.
    """

    x: Array
    y: Array
    starts: Int[Array, "clients"]
    sizes: Int[Array, "clients"]
    total: Float[Array, ""]
    outputs: Int[Array, "clients"] | None = None

    def of(self, client_id: Int[Array, ""]) -> Rows:
        """Arrays that hold a client's samples (x, y), and its first row in them."""
        return self.x, self.y, self.starts[client_id]

    @property
    def pool(self) -> tuple[Array, Array]:
        """What all clients' samples are taken from."""
        return self.x, self.y


class Made(eqx.Module):
    """One split of which nothing but the sizes is there; as `Arrays`."""

    maker: Maker
    sizes: Int[Array, "clients"]
    total: Float[Array, ""]
    outputs: None = None

    def of(self, client_id: Int[Array, ""]) -> Rows:
        """Arrays that hold a client's samples (x, y), and its first row in them."""
        return *self.maker.samples(client_id), jnp.zeros((), jnp.int32)

    @property
    def pool(self) -> Maker:
        """What all clients' samples are made from."""
        return self.maker


Samples = Arrays | Made
_on_device: "WeakKeyDictionary[Split | GeneratedSplit, Samples]" = WeakKeyDictionary()


def total_of(sizes: Int[np.ndarray, "clients"]) -> Float[Array, ""]:
    """Samples of all clients, as a float."""
    return jnp.asarray(int(sizes.sum()), jnp.result_type(float))


def to_device(split: Split | GeneratedSplit) -> Samples:
    """A split on the device; moved once, however many simulations use it, and let go with it.

    On a CPU, samples that lie on a 64-byte boundary are not copied; from here on they are read-only.
    """
    if split not in _on_device:
        with jax.ensure_compile_time_eval():  # asked for inside a jit, it is still an array that stays
            _on_device[split] = _moved(split)
    return _on_device[split]


def _moved(split: Split | GeneratedSplit) -> Samples:
    sizes, total = split.sizes.astype(np.int32), total_of(split.sizes)
    if isinstance(split, GeneratedSplit):
        return Made(split.maker, jax.device_put(sizes), total)
    starts = split.starts.astype(np.int32)
    outputs = None if split.outputs is None else split.outputs.astype(np.int32)
    for array in (split.x, split.y, starts, sizes, outputs):
        if array is not None and is_aligned(array):
            array.flags.writeable = False
    x, y, starts, sizes, outputs = jax.device_put((split.x, split.y, starts, sizes, outputs), may_alias=True)
    return Arrays(x, y, starts, sizes, total, outputs)
