"""Read idx files, the format in which MNIST is published, raw or compressed by gzip.

Layout: two zero bytes, a type code, the number of dimensions, each dimension as a big-endian uint32, then the
values. (Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits", section on file formats.)
"""

import gzip
import hashlib
import math
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from idiolect.errors import DataError

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_AGAIN = "download it again"


def find_idx(folder: Path, name: str, published: str) -> Path:
    """The file `name` or `name.gz` in the folder."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            return path
    raise DataError(f"missing file {folder / name}.gz (or without .gz); {published}")


def read_idx(path: str | Path, *, md5: str | None = None) -> Shaped[np.ndarray, "..."]:
    """The array in an idx file; with `md5`, the uncompressed content must have that md5."""
    path = Path(path)
    content = _content(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise DataError(f"{path} is not an idx file: it starts with the bytes {content[:4].hex()}; {_AGAIN}")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise DataError(f"{path} is truncated: its header has {start} bytes, the file {len(content)}; {_AGAIN}")
    dtype = np.dtype(_TYPES[content[2]])
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", content[3], 4))
    expected = start + dtype.itemsize * math.prod(shape)
    if len(content) != expected:
        problem = "is truncated" if len(content) < expected else "has trailing bytes"
        raise DataError(f"{path} {problem}: shape {shape} needs {expected} bytes, it has {len(content)}; {_AGAIN}")
    if md5 is not None and (found := hashlib.md5(content, usedforsecurity=False).hexdigest()) != md5:
        raise DataError(
            f"{path} is not the published file: md5 of its uncompressed content is {found}, expected {md5}; "
            f"{_AGAIN}, or read it as it is with verify=False"
        )
    array = np.frombuffer(content, dtype, offset=start).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _content(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    if path.suffix != ".gz":
        return raw
    if raw[:2] != b"\x1f\x8b":
        raise DataError(f"{path} is not a gzip file; {_AGAIN}, or remove .gz from its name if it is unpacked")
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is truncated or damaged ({error}); {_AGAIN}") from error
