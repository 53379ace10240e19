"""Federated data in a folder: encoded once, and mapped into memory, so that they may be larger than it.

The folder holds `federation.json` and, for each split, NumPy files of the features, the labels and the offsets. Each
client's rows are side by side. The system reads the features when they are used, and forgets them when it needs the
memory for something else.
"""

import json
import os
import shutil
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Shaped
from pydantic import ValidationError

from idiolect.core.errors import DataError, StoreError, os_errors_as, reason_of, require
from idiolect.core.files import json_of, no_empty_folders, path_of, sync_folder, write_text
from idiolect.core.rights import make_folder, private
from idiolect.data.audit import audit_lines
from idiolect.data.federated import SPLITS, FederatedData, Split, TaskKind, first_not_finite
from idiolect.data.modalities import Modalities
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import Schema

HEADER = "federation.json"
FORMAT, VERSION = "idiolect-federation", 1
AUDITED = 5_000_000
"""Rows up to which the audit for leaks is made: it holds a few numbers of each row in memory."""
PIECE = 2**26  # bytes that are copied at a time
_NPY = 128  # bytes of the header of a .npy file, which is written last

Samples = tuple[Shaped[np.ndarray, "_ ..."], Shaped[np.ndarray, "_"]]
"""The features and the labels of a client's rows."""


def save_data(data: FederatedData, folder: str | os.PathLike[str]) -> None:
    """Write federated data to a new folder, completely or not at all; `load_data` reads it.

    Raises `DataError` for generated samples and for data with clients held out (hold them out after loading),
    `StoreError` if the folder is not empty or cannot be written.
    """
    with new_folder(folder) as partial:
        for name in SPLITS:
            write_rows(partial / f"{name}.x.npy", data.stored(name).x)
        finish(partial, data)


def load_data(folder: str | os.PathLike[str], *, verify: bool = False) -> FederatedData:
    """Read the data of a folder that `save_data`, `FolderWriter` or `encode_table` wrote.

    The features stay in their files: they are mapped into memory and read when they are used. verify: read
    everything, and compare it with the sha256 that was taken when it was written; without it only the files' sizes
    are compared. Raises `StoreError` for a folder that is missing, damaged or of another version.
    """
    path = path_of(folder, "federated data are in a folder")
    try:
        header = json_of((path / HEADER).read_bytes())
    except OSError as error:
        raise StoreError(f"cannot read {path / HEADER}: {reason_of(error)}; {_REMEDY}") from error
    except ValueError as error:
        raise StoreError(f"{path / HEADER} is not JSON ({error}); {_REMEDY}") from error
    if not isinstance(header, dict) or (header.get("format"), header.get("version")) != (FORMAT, VERSION):
        raise StoreError(f"{path} does not hold federated data of version {VERSION}; {_REMEDY}")
    try:
        data = _of_header(path, header)
        fingerprint = str(header["fingerprint"])
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise StoreError(f"{path / HEADER} is damaged ({type(error).__name__}); {_REMEDY}") from error
    if verify and data.fingerprint != fingerprint:
        raise StoreError(f"the files in {path} do not match their sha256: they were changed or damaged; {_REMEDY}")
    return with_fingerprint(data, fingerprint)


_REMEDY = "name a folder that 'idiolect encode' or save_data wrote, or write it again"


def is_folder_of_data(path: Path) -> bool:
    """Whether a folder holds federated data."""
    try:
        return (path / HEADER).is_file()
    except (OSError, ValueError):
        return False


def with_fingerprint(data: FederatedData, fingerprint: str) -> FederatedData:
    """The data, whose fingerprint is known and need not be computed from all of its bytes."""
    data.__dict__["fingerprint"] = fingerprint
    return data


def _of_header(path: Path, header: Mapping[str, Any]) -> FederatedData:
    for name, size in header["files"].items():
        found = (path / name).stat().st_size if (path / name).is_file() else None
        if found != size:
            have = "is missing" if found is None else f"has {found} bytes instead of {size}"
            raise StoreError(f"{path / name} {have}; copy the whole folder, or write it again")
    modalities, target = header["modalities"], header["target"]
    splits: dict[str, Any] = {name: _split(path, name, header["files"]) for name in SPLITS}
    return FederatedData(
        name=header["name"],
        **splits,
        clients=tuple(header["clients"]),
        task=header["task"],
        classes=tuple(header["classes"]),
        notes=tuple(header["notes"]),
        provenance=header["provenance"],
        modalities=modalities and Modalities(tuple(modalities["names"]), tuple(map(tuple, modalities["shapes"]))),
        schema=header["schema"] and Schema.from_dict(header["schema"], str(path / HEADER)),
        own_classes=tuple(map(tuple, header["own_classes"])),
        target=target and Target.model_validate(target),
    )


def _split(path: Path, name: str, files: Mapping[str, int]) -> Split:
    outputs = f"{name}.outputs.npy"
    return Split(
        mapped(path / f"{name}.x.npy"),
        _array(path / f"{name}.y.npy"),
        _array(path / f"{name}.offsets.npy"),
        _array(path / outputs) if outputs in files else None,
        checked=True,
    )


def mapped(path: Path) -> Shaped[np.ndarray, "..."]:
    """A .npy file's array, mapped into memory; one without rows is read."""
    array = _array(path, "r")
    return array if array.size else np.array(array)


def _array(path: Path, mode: Any = None) -> Shaped[np.ndarray, "..."]:
    try:
        try:
            return np.load(path, mmap_mode=mode, allow_pickle=False)
        except ValueError:
            if mode is None:
                raise
            return np.load(path, allow_pickle=False)  # an array without rows cannot be mapped
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} is missing, damaged or no NumPy file; {_REMEDY}") from error


@contextmanager
def new_folder(folder: str | os.PathLike[str]) -> Generator[Path]:
    """A folder next to `folder`, which takes its name when the block ends and is removed if that fails.

    Raises `StoreError` if `folder` is there and not empty, or nothing can be written there.
    """
    target = path_of(folder, "federated data are written to a folder")
    target = Path(os.path.abspath(target.expanduser()))
    partial = target.with_name(f".{target.name}.partial")
    with os_errors_as(f"cannot write {folder}"):
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise StoreError(f"{folder} is there already; name a new folder, or remove it first")
        with no_empty_folders(target.parent):
            make_folder(target.parent)
            shutil.rmtree(partial, ignore_errors=True)  # what a killed writer left
            make_folder(partial)
            try:
                yield partial
                os.replace(partial, target)
                sync_folder(target.parent)
            finally:
                shutil.rmtree(partial, ignore_errors=True)


def write_rows(path: Path, rows: Shaped[np.ndarray, "..."]) -> None:
    """Write an array as a .npy file, in pieces."""
    count = max(1, PIECE // max(rows[:1].nbytes, 1))
    pieces = (rows[first : first + count] for first in range(0, len(rows), count))
    write_pieces(path, rows.shape, rows.dtype, pieces)


def write_pieces(
    path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], pieces: Iterable[Shaped[np.ndarray, "..."]]
) -> None:
    """Write a .npy file of an array that comes in pieces of its first axis."""
    with open(path, "xb", opener=private) as file:
        np.lib.format.write_array_header_1_0(file, _header(shape, dtype))
        for piece in pieces:
            file.write(np.ascontiguousarray(piece).data)
        _synced(file)


def _header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> dict[str, Any]:
    return {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}


def _synced(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def finish(partial: Path, data: FederatedData) -> None:
    """Write the other files of a folder that holds the features of these data, and last `federation.json`.

    The data are read once for their fingerprint, and once for the audit if they have at most `AUDITED` rows.
    """
    if data.held_out is not None:
        raise DataError(
            f"{data.name}: clients are held out; write the data with them, and hold them out after loading"
        )
    splits = {name: data.stored(name) for name in SPLITS}
    for name, split in splits.items():
        small = {"y": split.y, "offsets": split.offsets, "outputs": split.outputs}
        for what, array in small.items():
            if array is not None:
                write_rows(partial / f"{name}.{what}.npy", array)
    rows = sum(split.count for split in splits.values())
    audited = audit_lines(data) if rows <= AUDITED else [f"Not audited: more than {AUDITED:,} rows."]
    header = {
        "format": FORMAT,
        "version": VERSION,
        "name": data.name,
        "task": data.task,
        "classes": data.classes,
        "own_classes": data.own_classes,
        "notes": data.notes,
        "provenance": {**data.provenance, "audit": {"of": data.fingerprint, "lines": audited}},
        "modalities": data.modalities and {"names": data.modalities.names, "shapes": data.modalities.shapes},
        "schema": data.schema and data.schema.to_dict(),
        "target": data.target and data.target.model_dump(mode="json"),
        "fingerprint": data.fingerprint,
        "files": {path.name: path.stat().st_size for path in sorted(partial.glob("*.npy"))},
        "clients": data.clients,
    }
    write_text(partial / HEADER, json.dumps(header, ensure_ascii=False) + "\n")


class FolderWriter:
    """Writes federated data client by client, so that only one client's samples are in memory.

        with FolderWriter("big", task="classification", classes=("no", "yes")) as folder:
            for name, (x, y) in clients:
                folder.add(name, train=(x[50:], y[50:]), test=(x[:50], y[:50]))
        data = idiolect.data.load_data("big")

    Features are stored in single precision; labels are whole numbers from 0 for classes, in single precision for a
    regression. The folder is there when the block ends without an error, else nothing is. name: by default the
    folder's. notes, provenance: see `FederatedData`.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        task: TaskKind,
        classes: Sequence[str] = (),
        name: str | None = None,
        notes: Sequence[str] = (),
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        require(task in ("classification", "regression"), f"task = {task!r} is not classification or regression")
        require(
            (task == "classification") == (len(classes) > 1),
            "a classification needs the names of its classes, at least two; a regression has none",
        )
        self._folder = path_of(folder, "federated data are written to a folder")
        self._name = name or self._folder.name
        self._partial: Path | None = None  # inside of the with block
        self._task: TaskKind = task
        self._classes, self._notes, self._provenance = tuple(classes), tuple(notes), dict(provenance or {})
        self._clients = list[str]()
        self._names = set[str]()
        self._y: dict[str, list[Shaped[np.ndarray, "m"]]] = {split: [] for split in SPLITS}
        self._shape: tuple[int, ...] | None = None
        self._files: dict[str, BinaryIO] = {}

    def __enter__(self) -> "FolderWriter":
        """Make the folder's beginnings."""
        self._writing = new_folder(self._folder)
        self._partial = self._writing.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Complete the folder, or remove it after an error."""
        try:
            if error is None:
                self._finish()
        except BaseException as failure:
            self._close()
            self._writing.__exit__(type(failure), failure, failure.__traceback__)
            raise
        self._close()
        self._writing.__exit__(kind, error, trace)

    def add(
        self, client: str, *, train: Samples, validation: Samples | None = None, test: Samples | None = None
    ) -> None:
        """Add a client with its samples: (features, labels) of each split. Raises `DataError` if they do not fit."""
        require(self._partial is not None, "add clients inside of the with block")
        client = str(client)
        if client in self._names:
            raise DataError(f"client '{client}' is added twice")
        given = {"train": train, "validation": validation, "test": test}
        made = {split: self._checked(client, split, *part) for split, part in given.items() if part is not None}
        if len(made["train"][1]) == 0:
            raise DataError(f"client '{client}' has no training samples; leave it out")
        for split in SPLITS:
            if split in made:
                self._of(split).write(made[split][0].data)
            self._y[split].append(made[split][1] if split in made else self._y_of(np.zeros(0)))
        self._names.add(client)
        self._clients.append(client)

    def _of(self, split: str) -> BinaryIO:
        assert self._partial is not None
        if split not in self._files:
            self._files[split] = open(self._partial / f"{split}.x.npy", "xb", opener=private)  # noqa: SIM115
            self._files[split].write(bytes(_NPY))  # its header follows when the rows are counted
        return self._files[split]

    def _y_of(self, y: Shaped[np.ndarray, "m"]) -> Shaped[np.ndarray, "m"]:
        return y.astype(np.int32 if self._task == "classification" else np.float32)

    def _checked(
        self, client: str, split: str, x: Shaped[np.ndarray, "..."], y: Shaped[np.ndarray, "..."]
    ) -> Samples:
        where = f"client '{client}', {split}"
        try:
            x, y = np.ascontiguousarray(x, np.float32), np.asarray(y)
            with np.errstate(invalid="ignore"):  # NaN is reported below
                numbers = self._y_of(y)
        except (TypeError, ValueError) as error:
            raise DataError(f"{where}: features and labels must be numbers ({error})") from error
        if self._shape is None:
            self._shape = x.shape[1:]
        if x.shape[1:] != self._shape or x.ndim < 2 or y.shape != x.shape[:1]:
            raise DataError(
                f"{where}: features of shape {x.shape} and labels of shape {y.shape}; they must be "
                f"{('rows', *self._shape)} and ('rows',)"
            )
        if first_not_finite(x) is not None or first_not_finite(y) is not None:
            raise DataError(f"{where}: NaN or infinity; clean or impute the data first")
        classes = len(self._classes)
        if classes and len(y) and ((numbers != y).any() or numbers.min() < 0 or numbers.max() >= classes):
            raise DataError(f"{where}: labels must be whole numbers from 0 to {classes - 1}")
        return x, numbers

    def _finish(self) -> None:
        require(self._shape is not None, "no client was added; a federation needs at least one")
        assert self._shape is not None
        assert self._partial is not None
        splits = dict[str, Any]()
        for split in SPLITS:
            file, sizes = self._of(split), [len(y) for y in self._y[split]]
            offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
            file.seek(0)
            np.lib.format.write_array_header_1_0(file, _header((int(offsets[-1]), *self._shape), np.dtype("<f4")))
            assert file.tell() == _NPY
            _synced(file)
            y = np.concatenate(self._y[split])
            splits[split] = Split(mapped(self._partial / f"{split}.x.npy"), y, offsets, checked=True)
        data = FederatedData(
            name=self._name,
            **splits,
            clients=tuple(self._clients),
            task=self._task,
            classes=self._classes,
            notes=self._notes,
            provenance={"source": "folder", **self._provenance},
        )
        finish(self._partial, data)

    def _close(self) -> None:
        self._partial = None
        for file in self._files.values():
            file.close()
