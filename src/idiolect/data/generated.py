"""Generated samples: computed from a client's number when they are used, never stored."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NoReturn, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Shaped

from idiolect.core.errors import DataError


@runtime_checkable
class Hash(Protocol):
    """A hash that takes more bytes, such as `hashlib.sha256()`."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Add bytes."""


class Maker(eqx.Module):
    """Generates one client's samples in one split: a pure JAX function of the client's number.

    capacity: rows it generates for any client; the first n_i of them are client i's samples.
    """

    capacity: eqx.AbstractVar[int]

    @abstractmethod
    def samples(self, client_id: Int[Array, ""]) -> tuple[Shaped[Array, "capacity ..."], Shaped[Array, "capacity"]]:
        """Features (capacity, *feature_shape) and labels (capacity,)."""


@dataclass(frozen=True, eq=False)
class GeneratedSplit:
    """One split of all clients whose samples are generated: only each client's size is stored.

    What needs all samples at once (pooling, a graph by labels, an audit) raises `DataError`.
    """

    maker: Maker
    sizes: Int[np.ndarray, "clients"]
    outputs: None = None

    def __post_init__(self) -> None:
        if len(self.sizes) and not 0 <= int(self.sizes.min()) <= int(self.sizes.max()) <= self.maker.capacity:
            raise DataError(f"generated clients must have from 0 to {self.maker.capacity} samples")

    @property
    def starts(self) -> Int[np.ndarray, "clients"]:
        """Each client's first row among its own generated rows: 0."""
        return np.zeros(len(self.sizes), np.int64)

    @property
    def count(self) -> int:
        """Samples of all clients."""
        return int(self.sizes.sum())

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """Shape of one sample's features."""
        x, _ = jax.eval_shape(self.maker.samples, jax.ShapeDtypeStruct((), np.int32))
        return tuple(x.shape[1:])

    def client(self, index: int) -> tuple[Shaped[np.ndarray, "m ..."], Shaped[np.ndarray, "m"]]:
        """One client's samples: (features, labels)."""
        x, y = _made(self.maker, np.asarray(index, np.int32))
        return np.asarray(x)[: self.sizes[index]], np.asarray(y)[: self.sizes[index]]

    def digest(self, sha: Hash) -> None:
        """Add the generator and the sizes to a hash."""
        leaves, structure = jax.tree.flatten(self.maker)
        sha.update(f"{type(self.maker).__name__}{structure}{[np.asarray(leaf).tolist() for leaf in leaves]}".encode())
        sha.update(np.ascontiguousarray(self.sizes).data)

    @property
    def x(self) -> Shaped[np.ndarray, "n ..."]:
        """Raises `DataError`: the samples of all clients never exist at once."""
        refuse()

    @property
    def y(self) -> Shaped[np.ndarray, "n"]:
        """Raises `DataError`, as `x`."""
        refuse()

    @property
    def offsets(self) -> Int[np.ndarray, "clients_plus_1"]:
        """Raises `DataError`, as `x`."""
        refuse()

    @property
    def owners(self) -> Int[np.ndarray, "n"]:
        """Raises `DataError`, as `x`."""
        refuse()


@eqx.filter_jit
def _made(maker: Maker, client_id: Int[Array | np.ndarray, ""]) -> tuple[Array, Array]:
    return maker.samples(jnp.asarray(client_id))


def refuse() -> NoReturn:
    """Raise the `DataError` for a use that needs all generated samples at once."""
    raise DataError(
        "these clients' samples are generated when they are used and never stored together; what needs all of them "
        "at once (pooling, graphs by data, folds) works on stored data sets only"
    )
