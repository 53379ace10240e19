"""Read idx files, the format in which MNIST is published, raw or compressed by gzip.

Layout: two zero bytes, a type code, the number of dimensions, each dimension as a big-endian uint32, then the
values. (Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits", section on file formats.)
"""

import hashlib
import math
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from idiolect.core.errors import DataError
from idiolect.data.files.gz import AGAIN, read_gz

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: str | Path, *, md5: str | None = None) -> Shaped[np.ndarray, "..."]:
    """The array in an idx file; raises `DataError` if it is damaged or its uncompressed md5 is not `md5`."""
    path = Path(path)
    content = read_gz(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise DataError(f"{path} is not an idx file: it starts with the bytes {content[:4].hex()}; {AGAIN}")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise DataError(f"{path} is truncated: its header has {start} bytes, the file {len(content)}; {AGAIN}")
    dtype = np.dtype(_TYPES[content[2]])
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", content[3], 4))
    expected = start + dtype.itemsize * math.prod(shape)
    if len(content) != expected:
        problem = "is truncated" if len(content) < expected else "has trailing bytes"
        raise DataError(f"{path} {problem}: shape {shape} needs {expected} bytes, it has {len(content)}; {AGAIN}")
    if md5 is not None and (actual_md5 := hashlib.md5(content, usedforsecurity=False).hexdigest()) != md5:
        raise DataError(
            f"{path} is not the published file: md5 of its uncompressed content is {actual_md5}, expected {md5}; "
            f"{AGAIN}, or read it as it is with verify=False"
        )
    array = np.frombuffer(content, dtype, offset=start).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)
