"""Federated data: all clients' samples concatenated with offsets (CSR), or generated when used, without padding."""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NoReturn, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Shaped

from idiolect.core.errors import DataError, require, unknown
from idiolect.data.modalities import Modalities
from idiolect.data.schema.columns import Categories
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import Schema


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


_PIECE = 2**20  # numbers that are checked together


def first_not_finite(values: Shaped[np.ndarray, "n ..."]) -> int | None:
    """The first row that holds NaN or infinity, or None; read in pieces, as the rows may be larger than memory."""
    if not np.issubdtype(values.dtype, np.floating):
        return None
    count = max(1, _PIECE // max(values[:1].size, 1))
    for first in range(0, len(values), count):
        finite = np.isfinite(values[first : first + count])
        if not finite.all():
            return first + int(np.flatnonzero(~finite.reshape(len(finite), -1).all(axis=1))[0])
    return None


SPLITS = ("train", "validation", "test")
TaskKind = Literal["classification", "regression"]
INCOMPLETE = "incomplete: "
"""A note that begins so says what the data lack of the published set: results on them reproduce nothing published."""


@dataclass(frozen=True, eq=False)  # compared and hashed by identity: its arrays are large
class Split:
    """One split of all clients in CSR form: client i owns rows `offsets[i]:offsets[i + 1]`.

    x: features, (n, *feature_shape) float32; y: labels, (n,) int32 classes or (n,) float32 targets.
    outputs: K_i, the number of classes of each client where clients number their own, 0..K_i - 1; else None.
    checked: the numbers are known to be finite, so that they need not be read for that.
    """

    x: Shaped[np.ndarray, "n ..."]
    y: Shaped[np.ndarray, "n"]
    offsets: Int[np.ndarray, "clients_plus_1"]
    outputs: Int[np.ndarray, "clients"] | None = None
    checked: bool = False

    def __post_init__(self) -> None:
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.y) or (np.diff(self.offsets) < 0).any():
            raise DataError(
                f"offsets must rise from 0 to the number of samples ({len(self.y)}); "
                f"they run {self.offsets[0]}..{self.offsets[-1]}"
            )
        if len(self.x) != len(self.y):
            raise DataError(f"{len(self.x)} feature rows but {len(self.y)} labels")
        if self.outputs is not None and len(self.y) and (self.y >= self.outputs[self.owners]).any():
            owner = int(self.owners[np.argmax(self.y >= self.outputs[self.owners])])
            raise DataError(f"client {owner} has {self.outputs[owner]} classes but a label beyond them")

    def __repr__(self) -> str:
        """One line, without the arrays."""
        shape = " x ".join(map(str, self.feature_shape))
        return f"<Split: {self.count} samples of {len(self.sizes)} clients, {shape} features>"

    @property
    def sizes(self) -> Int[np.ndarray, "clients"]:
        """Samples of each client."""
        return np.diff(self.offsets)

    @property
    def starts(self) -> Int[np.ndarray, "clients"]:
        """Each client's first row."""
        return self.offsets[:-1]

    @property
    def count(self) -> int:
        """Samples of all clients."""
        return len(self.y)

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """Shape of one sample's features."""
        return tuple(self.x.shape[1:])

    def digest(self, sha: Hash) -> None:
        """Add every array to a hash."""
        outputs = () if self.outputs is None else (self.outputs,)
        for array in (self.x, self.y, self.offsets, *outputs):
            sha.update(f"{array.dtype.str}{array.shape}".encode())
            sha.update(np.ascontiguousarray(array).data)

    def client(self, index: int) -> tuple[Shaped[np.ndarray, "m ..."], Shaped[np.ndarray, "m"]]:
        """One client's samples: (features, labels)."""
        rows = slice(int(self.offsets[index]), int(self.offsets[index + 1]))
        return self.x[rows], self.y[rows]

    @property
    def owners(self) -> Int[np.ndarray, "n"]:
        """The client of every row."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.sizes)


@dataclass(frozen=True)
class FederatedData:
    """A federation's data: three splits, the clients' names, notes for the reader, and provenance.

    Raises `DataError` if a split has another number of clients, a client has no training sample, or a feature or
    target is NaN or infinite. A client without test (or validation) samples has no score there: NaN.

    classes: the class names of a classification task, empty for regression. These are only numbers where clients
        number their own classes (`own_labels`), so that label k means another class at each client.
    notes: caveats for a reader of the results (a leak by design, imputed values); shown in every report.
    provenance: what reproduces the data (source, partition name, seed, hashes); stored with every run.
    modalities: the layout of a sample's modalities in its vector; None for data of one modality.
    schema: what the features and labels of a table mean; it encodes new rows. None for other data.
    own_classes: where clients number their own classes, the names of each client's, in its order; else empty.
    target: how a regression's labels were scaled; None if they are in the user's units.
    held_out: clients that take no part in training, to be served as new clients afterwards; None if there are none.
    """

    name: str
    train: Split | GeneratedSplit
    validation: Split | GeneratedSplit
    test: Split | GeneratedSplit
    clients: tuple[str, ...]
    task: TaskKind
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict[str, Any])
    modalities: Modalities | None = None
    schema: Schema | None = None
    own_classes: tuple[tuple[str, ...], ...] = ()
    target: Target | None = None
    held_out: "FederatedData | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in SPLITS:
            count = len(self.split(name).sizes)
            if count != len(self.clients):
                raise DataError(f"{self.name}: {len(self.clients)} clients but the {name} split has {count}")
        for empty in np.flatnonzero(self.train.sizes == 0):
            raise DataError(
                f"{self.name}: client '{self.clients[empty]}' has no training samples; drop it or merge it"
            )
        for name in SPLITS:
            split = self.split(name)
            if isinstance(split, GeneratedSplit) or split.checked:
                continue
            for what, values in (("features", split.x), ("labels", split.y)):
                if (row := first_not_finite(values)) is not None:
                    raise DataError(
                        f"{self.name}: NaN or infinity in the {name} {what} of client "
                        f"'{self.clients[split.owners[row]]}'; clean or impute the data first"
                    )

    def __repr__(self) -> str:
        """One line: clients, samples, features and labels; no arrays."""
        counts = ", ".join(f"{self.split(name).count} {name}" for name in SPLITS)
        labels = f"{len(self.classes)} classes" if self.task == "classification" else "regression"
        shape = " x ".join(map(str, self.feature_shape))
        return (
            f"<FederatedData {self.name}: {self.num_clients} clients, {counts} samples; {shape} features, {labels}>"
        )

    def split(self, name: str) -> Split | GeneratedSplit:
        """The split called 'train', 'validation' or 'test'."""
        if name not in SPLITS:
            raise unknown("split", name, SPLITS)
        return getattr(self, name)

    def stored(self, name: str) -> Split:
        """The split called `name`; raises `DataError` if its samples are generated, not stored."""
        split = self.split(name)
        return refuse() if isinstance(split, GeneratedSplit) else split

    @property
    def own_labels(self) -> bool:
        """Whether each client numbers its own classes from 0."""
        return self.train.outputs is not None

    def classes_of(self, client: int) -> tuple[str, ...]:
        """The names of one client's classes: all, but where clients number their own."""
        if self.own_classes:
            return self.own_classes[client]
        outputs = self.train.outputs
        return self.classes if outputs is None else self.classes[: int(outputs[client])]

    @property
    def num_clients(self) -> int:
        """Number of clients N."""
        return len(self.clients)

    @property
    def num_outputs(self) -> int:
        """Outputs a model needs: the number of classes, or 1 for regression."""
        return len(self.classes) if self.task == "classification" else 1

    @property
    def label_scale(self) -> float:
        """What a regression's labels were divided by; scores are in the units before that."""
        return 1.0 if self.target is None else self.target.scale

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """Shape of one sample's features."""
        return self.train.feature_shape

    @property
    def categories(self) -> Categories:
        """(first feature, features) of each column of categories of a table; none of other data."""
        return () if self.schema is None else self.schema.categories

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over every array and client name: equal exactly when the data are equal, bit for bit."""
        digest = hashlib.sha256("\0".join((*self.clients, *self.classes, self.task)).encode())
        for name in SPLITS:
            self.split(name).digest(digest)
        if self.categories:
            digest.update(repr(self.categories).encode())
        if self.label_scale != 1:
            digest.update(repr(self.label_scale).encode())
        if self.held_out is not None:
            digest.update(self.held_out.fingerprint.encode())
        return digest.hexdigest()

    def pooled(self) -> "FederatedData":
        """All samples as those of one client (centralised training)."""
        splits = {
            name: Split((s := self.stored(name)).x, s.y, np.array([0, len(s.y)], dtype=s.offsets.dtype))
            for name in SPLITS
        }
        return replace(self, clients=("pooled",), **splits)

    def merged(self, count: int) -> "FederatedData":
        """The same samples at `count` clients, each of which merges several consecutive ones.

        Raises `ConfigError` unless 1 <= count <= N and all clients number the classes alike.
        """
        require(
            1 <= count <= self.num_clients and not self.own_labels,
            f"clients = {count} must lie between 1 and {self.num_clients}, with the same classes for all",
        )
        edges = [self.num_clients * i // count for i in range(count + 1)]
        splits = {name: Split((s := self.stored(name)).x, s.y, s.offsets[edges]) for name in SPLITS}
        names = tuple(
            self.clients[a] if b == a + 1 else f"{self.clients[a]} to {self.clients[b - 1]}"
            for a, b in pairwise(edges)
        )
        return replace(self, clients=names, **splits)

    def select(self, keep: Callable[[int], bool]) -> "FederatedData":
        """The federation of the clients whose index satisfies `keep`; raises `DataError` if there is none."""
        clients = [i for i in range(self.num_clients) if keep(i)]
        if not clients:
            raise DataError(f"{self.name}: no client is left after the selection")

        def part(name: str) -> Split:
            split = self.stored(name)
            rows = np.concatenate([np.arange(split.offsets[i], split.offsets[i + 1]) for i in clients])
            sizes = split.sizes[clients]
            outputs = None if split.outputs is None else split.outputs[clients]
            return Split(
                split.x[rows], split.y[rows], np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), outputs
            )

        return replace(
            self,
            clients=tuple(self.clients[i] for i in clients),
            own_classes=tuple(self.own_classes[i] for i in clients) if self.own_classes else (),
            train=part("train"),
            validation=part("validation"),
            test=part("test"),
        )
