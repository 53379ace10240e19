"""A partition: which samples of a pool each client has for training, validation and testing.

Its file is a zip of .npy arrays and a JSON header; equal content gives equal bytes.
"""

import hashlib
import io
import json
import os
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from idiolect.core.errors import ConfigError, DataError, reason_of, unknown
from idiolect.core.files import json_of, path_of
from idiolect.core.memory import aligned_empty
from idiolect.data.federated import SPLITS, FederatedData, Split, TaskKind
from idiolect.data.modalities import Modalities
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import Schema

FORMAT = "idiolect-partition"
VERSION = 1
HEADER = "header.json"


def encode(header: Mapping[str, Any], arrays: Mapping[str, Int[np.ndarray, "_"]]) -> bytes:
    """The file's bytes: members stored in a fixed order, uncompressed, with a fixed date."""
    members = {HEADER: json.dumps({"format": FORMAT, "version": VERSION, **header}, sort_keys=True).encode()}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(array, dtype="<i8"), allow_pickle=False)
        members[f"{name}.npy"] = buffer.getvalue()
    file_bytes = io.BytesIO()
    with zipfile.ZipFile(file_bytes, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system = 3  # the same on every operating system
            info.external_attr = 0o600 << 16
            archive.writestr(info, content)
    return file_bytes.getvalue()


def write(path: str | Path, content: bytes) -> None:
    """Write the bytes to `path` atomically; raises `DataError` if it cannot be written."""
    path = Path(path)
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = file.name
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # a temporary file is private, an index file need not be
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise DataError(f"cannot write the partition file {path}: {reason_of(error)}") from error


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, Int[np.ndarray, "_"]]]:
    """The header and the arrays of a partition file; raises `DataError` if it is missing, damaged or another file."""
    path = path_of(path, "a partition is a Partition or the path of its file")
    remedy = "make the partition again or copy the whole file"
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"no partition file {path}; check the path or make the partition again") from error
    except OSError as error:
        raise DataError(f"cannot read the partition file {path}: {reason_of(error)}") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            header, arrays = _unpacked(content)
    except Exception as error:  # whatever zipfile, numpy and JSON meet in a damaged or forged file
        raise DataError(f"{path} is truncated, damaged or not a partition file; {remedy}") from error
    if header.get("format") != FORMAT or header.get("version") != VERSION:
        raise DataError(
            f"{path} is not a partition file of version {VERSION} "
            f"(format {header.get('format')!r}, version {header.get('version')!r}); make the partition again"
        )
    return header, arrays


def _unpacked(content: bytes) -> tuple[dict[str, Any], dict[str, Int[np.ndarray, "_"]]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        arrays = {
            name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
            for name in archive.namelist()
            if name.endswith(".npy")
        }
        return dict(json_of(archive.read(HEADER))), arrays


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
        write(path, encode(header, self._arrays()))

    @classmethod
    def load(cls, path: str | Path) -> "Partition":
        """Read a partition file; raises `DataError` if it does not match its own fingerprint."""
        header, arrays = read(path)
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


def _gathered(x: Shaped[np.ndarray, "pool ..."], index: Indices) -> Float[np.ndarray, "n ..."]:
    """As `as_float32(x[index])`, in one copy where x is of single precision and every index counts from the start."""
    inside = len(index) > 0 and int(index.min()) >= 0 and int(index.max()) < len(x)
    if x.dtype != np.float32 or not inside:
        return as_float32(x[index])
    out = aligned_empty((len(index), *x.shape[1:]))
    np.take(x, index, axis=0, out=out, mode="clip")  # the default mode makes a copy in between
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
    """Gather the pool's samples into federated data.

    Args:
        encode: Maps the gathered rows of one split to float32 features (normalisation), so that a large pool of bytes
            is never held in single precision as a whole.
        outputs: Each client's number of classes, if y numbers each client's own classes.
        pool: The hash of the original pool, if x was derived from it after partitioning.
        modalities: The layout of the encoded rows, if they are packed samples of several modalities.
        schema: What the encoded rows mean, if they are of a table.
        target: How a regression's labels y were scaled.

    Raises:
        DataError: If the pool is not the partition's.
    """
    check_pool(partition, pool or pool_hash(x, y))
    label_type = np.int32 if task == "classification" else np.float32

    def gather(rows: Rows) -> Split:
        own = _gathered(x, rows.index) if encode is as_float32 else encode(x[rows.index])
        return Split(own, y[rows.index].astype(label_type), rows.offsets, outputs)

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
