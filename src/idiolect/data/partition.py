"""A partition: which samples of a pool each client has for training, validation and testing."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from idiolect.core.aligned import aligned_empty
from idiolect.core.errors import ConfigError, DataError, unknown
from idiolect.data import partition_file
from idiolect.data.federated import SPLITS, FederatedData, Split, TaskKind
from idiolect.data.modalities import Modalities
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import Schema

Indices = Int[np.ndarray, "_"]


@dataclass(frozen=True, eq=False)
class Rows:
    """One split of a partition in CSR form: client i has the samples `index[offsets[i]:offsets[i + 1]]`."""

    index: Indices
    offsets: Indices

    @classmethod
    def of(cls, groups: Sequence[Indices]) -> "Rows":
        """Concatenate every client's indices."""
        sizes = np.array([len(group) for group in groups], dtype=np.int64)
        index = np.concatenate(groups) if len(groups) else np.zeros(0)
        return cls(index.astype(np.int64), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    @property
    def sizes(self) -> Indices:
        """Samples of each client."""
        return np.diff(self.offsets)

    def client(self, number: int) -> Indices:
        """One client's indices into the pool."""
        return self.index[self.offsets[number] : self.offsets[number + 1]]


@dataclass(frozen=True, eq=False)
class Partition:
    """Index arrays into a pool of samples, with the hashes that verify and the arguments that reproduce them.

    pool: sha256 of the pool's features and labels, see `pool_hash`; `apply_partition` refuses any other pool.
    parameters: the arguments of the partitioner and of the division into splits.
    statistics: samples of each client by split, samples of each label by client, distinct and unused samples.
    """

    name: str
    seed: int
    clients: tuple[str, ...]
    train: Rows
    validation: Rows
    test: Rows
    pool: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    statistics: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: tuple[str, ...] = ()

    def rows(self, split: str) -> Rows:
        """The indices of the split called 'train', 'validation' or 'test'."""
        if split not in SPLITS:
            raise unknown("split", split, SPLITS)
        return getattr(self, split)

    def _header(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "seed": self.seed,
            "clients": list(self.clients),
            "pool": self.pool,
            "parameters": dict(self.parameters),
            "statistics": dict(self.statistics),
            "notes": list(self.notes),
        }

    def _arrays(self) -> dict[str, Indices]:
        arrays: dict[str, Indices] = {}
        for name in SPLITS:
            arrays[name], arrays[f"{name}_offsets"] = self.rows(name).index, self.rows(name).offsets
        return arrays

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over the header and every array: equal exactly when the partitions are equal."""
        try:
            digest = hashlib.sha256(json.dumps(self._header(), sort_keys=True).encode())
        except TypeError as error:
            raise ConfigError(f"partition '{self.name}': parameters must be plain values; {error}") from error
        for name, array in self._arrays().items():
            digest.update(f"{name}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array, dtype="<i8").data)
        return digest.hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the partition file atomically; equal partitions give bit-identical files."""
        header = {**self._header(), "fingerprint": self.fingerprint}
        partition_file.write(path, partition_file.encode(header, self._arrays()))

    @classmethod
    def load(cls, path: str | Path) -> "Partition":
        """Read a partition file; raises `DataError` if it does not match its own fingerprint."""
        header, arrays = partition_file.read(path)
        try:
            rows = {name: Rows(arrays[name], arrays[f"{name}_offsets"]) for name in SPLITS}
            partition = cls(
                name=header["name"],
                seed=header["seed"],
                clients=tuple(header["clients"]),
                pool=header["pool"],
                parameters=header["parameters"],
                statistics=header["statistics"],
                notes=tuple(header["notes"]),
                **rows,
            )
        except KeyError as error:
            raise DataError(f"{path} has no entry {error}; make the partition again") from error
        if partition.fingerprint != header.get("fingerprint"):
            raise DataError(
                f"{path} does not match its own sha256: it was changed or damaged; make the partition again"
            )
        return partition


def pool_hash(*arrays: Shaped[np.ndarray, "..."]) -> str:
    """sha256 over the arrays' types, shapes and contents."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def check_pool(partition: Partition, pool: str) -> None:
    """Raise `DataError` unless the partition was made for the pool of samples with this hash."""
    if pool != partition.pool:
        raise DataError(
            f"partition '{partition.name}' was made for another pool of samples "
            f"(sha256 {partition.pool[:12]}…, this one is {pool[:12]}…); make it again from these data"
        )


def as_float32(rows: Shaped[np.ndarray, "n ..."]) -> Float[np.ndarray, "n ..."]:
    """Copy the features in single precision."""
    out = aligned_empty(rows.shape)
    out[...] = rows
    return out


def apply_partition(
    partition: Partition,
    x: Shaped[np.ndarray, "pool ..."],
    y: Shaped[np.ndarray, "pool"],
    *,
    name: str,
    task: TaskKind,
    classes: Sequence[str] = (),
    encode: Callable[[Shaped[np.ndarray, "n ..."]], Float[np.ndarray, "n ..."]] = as_float32,
    pool: str | None = None,
    outputs: Int[np.ndarray, "clients"] | None = None,
    notes: Sequence[str] = (),
    provenance: Mapping[str, Any] | None = None,
    modalities: Modalities | None = None,
    schema: Schema | None = None,
    target: Target | None = None,
) -> FederatedData:
    """Gather the pool's samples into federated data; raises `DataError` if the pool is not the partition's.

    encode: maps the gathered rows of one split to float32 features (normalisation), so that a large pool
    of bytes is never held in single precision as a whole.
    outputs: each client's number of classes, if y numbers each client's own classes.
    pool: the hash of the original pool, if x was derived from it after partitioning.
    modalities: the layout of the encoded rows, if they are packed samples of several modalities. schema: what the
    encoded rows mean, if they are of a table. target: how a regression's labels y were scaled.
    """
    check_pool(partition, pool or pool_hash(x, y))
    label_type = np.int32 if task == "classification" else np.float32

    def gather(rows: Rows) -> Split:
        return Split(encode(x[rows.index]), y[rows.index].astype(label_type), rows.offsets, outputs)

    return FederatedData(
        name=name,
        train=gather(partition.train),
        validation=gather(partition.validation),
        test=gather(partition.test),
        clients=partition.clients,
        task=task,
        classes=tuple(classes),
        notes=(*partition.notes, *notes),
        provenance={
            **(provenance or {}),
            "partition": {
                "name": partition.name,
                "seed": partition.seed,
                "parameters": dict(partition.parameters),
                "fingerprint": partition.fingerprint,
            },
            "pool": partition.pool,
        },
        modalities=modalities,
        schema=schema,
        target=target,
    )
