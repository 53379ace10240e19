"""Read image sets in idx files, the format in which MNIST is published, raw or compressed by gzip.

Layout: two zero bytes, a type code, the number of dimensions, each dimension as a big-endian uint32, then the
values. (Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits", section on file formats.)
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int32, Shaped, UInt8

from idiolect.core.errors import DataError
from idiolect.data.files.archive import AGAIN, data_folder, read_gz, require_gz
from idiolect.data.sets.image_set import ImagePartitioner, ImageSet

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


MNIST_FILES = (
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)

Part = tuple[UInt8[np.ndarray, "_ _ _"], Int32[np.ndarray, "_"]]
_Md5 = tuple[str | None, str | None]


def read_mnist_like(
    name: str,
    folder: str | Path | None,
    classes: Sequence[str],
    published: str,
    md5: Sequence[_Md5],
    *,
    verify: bool,
    partitions: Mapping[str, ImagePartitioner] | None = None,
    leaks: Mapping[str, str] | None = None,
) -> ImageSet:
    """Read a set with MNIST's file names from the sub-folder `name`: training images first, then test images.

    md5: of the uncompressed files, since gzip files contain a date and differ between mirrors; checked if `verify`.
    """
    set_folder = data_folder(folder, name, published)
    expected_md5 = md5 if verify else [(None, None)] * len(MNIST_FILES)
    parts = [
        read_part(set_folder, files, published, highest=len(classes) - 1, md5=pair)
        for files, pair in zip(MNIST_FILES, expected_md5, strict=True)
    ]
    images, labels = joined(parts, set_folder)
    return ImageSet(
        name=name,
        images=images.reshape(len(images), -1),
        labels=labels,
        shape=(*images.shape[1:], 1),
        classes=tuple(classes),
        trained=len(parts[0][0]),
        test_share=len(parts[1][0]) / len(images),
        partitions=partitions or {},
        leaks=leaks or {},
    )


def read_part(
    folder: Path, files: tuple[str, str], published: str, *, highest: int, md5: _Md5 = (None, None)
) -> Part:
    """The images and labels of one part; raises `DataError` on a label above `highest`, a wrong shape or md5."""
    paths = [require_gz(folder, name, published) for name in files]
    images, labels = (read_idx(path, md5=expected_md5) for path, expected_md5 in zip(paths, md5, strict=True))
    if images.ndim != 3 or labels.ndim != 1 or images.dtype != np.uint8 or labels.dtype != np.uint8:
        raise DataError(
            f"{paths[0]} and {paths[1]} must hold images and labels as bytes, their shapes are "
            f"{images.shape} and {labels.shape}; {published}"
        )
    if len(images) != len(labels):
        raise DataError(f"{paths[0]} has {len(images)} images, {paths[1]} has {len(labels)} labels")
    if labels.max(initial=0) > highest:
        raise DataError(f"{paths[1]} has a label above {highest}; it is another data set; {published}")
    return images, labels.astype(np.int32)


def joined(parts: Sequence[Part], where: Path) -> Part:
    """Concatenate the parts."""
    shapes = [images.shape[1:] for images, _ in parts]
    if len(set(shapes)) != 1:
        raise DataError(f"{where}: the images of the official parts differ in shape: {shapes}")
    return np.concatenate([images for images, _ in parts]), np.concatenate([labels for _, labels in parts])
