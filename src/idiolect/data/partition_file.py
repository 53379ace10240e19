"""The partition file: a zip of .npy arrays and a JSON header; equal content gives equal bytes."""

import io
import json
import os
import tempfile
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from idiolect.core.errors import DataError
from idiolect.core.reading import json_of, path_of

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
        raise DataError(f"cannot write the partition file {path}: {error.strerror or error}") from error


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, Int[np.ndarray, "_"]]]:
    """The header and the arrays of a partition file; raises `DataError` if it is missing, damaged or another file."""
    path = path_of(path, "a partition is a Partition or the path of its file")
    remedy = "make the partition again or copy the whole file"
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"no partition file {path}; check the path or make the partition again") from error
    except OSError as error:
        raise DataError(f"cannot read the partition file {path}: {error.strerror or error}") from error
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
