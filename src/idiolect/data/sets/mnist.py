"""MNIST, Fashion-MNIST and EMNIST from their original files: grey images of 28 x 28 pixels.

MNIST and Fashion-MNIST have 70,000 images each, their official train and test sets merged. EMNIST has handwritten
digits and letters, here in the orientation in which people read them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from jaxtyping import Int

from idiolect.core.errors import DataError, require, unknown
from idiolect.core.plugins import named
from idiolect.data.federated import INCOMPLETE, FederatedData
from idiolect.data.files.archive import AGAIN, data_folder, read_gz, require_gz
from idiolect.data.files.idx import Part, joined, read_mnist_like, read_part
from idiolect.data.partition import Partition
from idiolect.data.sets.image_set import ImageSet, PartitionOptions
from idiolect.data.sets.images import fixed, from_images, partition_images
from idiolect.data.sets.published import (
    MNIST_CLIENTS,
    MNIST_USED,
    PFEDME_CLIENTS,
    SEED,
    clean,
    fedu_mnist,
    fedu_note,
    paper_2020,
)

MNIST_PUBLISHED = (
    "the four idx files are published at http://yann.lecun.com/exdb/mnist/ and mirrored at "
    "https://storage.googleapis.com/cvdf-datasets/mnist/"
)
MNIST_MD5 = (
    ("6bbc9ace898e44ae57da46a324031adb", "a25bea736e30d166cdddb491f175f624"),
    ("2646ac647ad5339dbf082846283269ea", "27ae3e4e09519cfbb04c329615203637"),
)


@named("mnist", task="classification")
def mnist(
    folder: str | Path | None = None,
    partition: str = "clean",
    *,
    normalisation: str = "pixel-zscore-train",
    shape: str = "flat",
    verify: bool = True,
    **options: Unpack[PartitionOptions],
) -> FederatedData:
    """MNIST digits at 20 clients with two digits each, or divided by any partition.

    All other settings: see `PartitionOptions`.

    Args:
        folder: Contains `mnist/` with the idx files, raw or .gz; by default the environment variable IDIOLECT_DATA.
        partition: 'clean' (disjoint), 'paper-2020' (pFedMe's published split, whose clients share images), 'fedu-100'
            (FedU's 100 clients, disjoint), or what `partition_images` offers: the name of a partition with its
            parameters (dirichlet: concentration=0.3), or the path of a saved .npz, which fixes clients, seeds and
            fractions. 'clean', 'paper-2020' and 'fedu-100' are fixed: they do not depend on the seed.
        normalisation: See `normalise`; pFedMe's published code uses 'pixel-zscore-all', which sees the test images.
        shape: Features 'flat' (784,) or 'image' (28, 28, 1).
        verify: Check that the files are the published ones, byte for byte.
    """
    pool = read_mnist(folder, verify=verify)
    return from_images(pool, partition, normalisation=normalisation, shape=shape, **options)


def mnist_partition(
    folder: str | Path | None = None, partition: str = "clean", *, verify: bool = True, **arguments: Any
) -> Partition:
    """Return the partition that `mnist` makes from the same arguments, for example to save it."""
    return partition_images(read_mnist(folder, verify=verify), partition, **arguments)


def read_mnist(folder: str | Path | None = None, *, verify: bool = True) -> ImageSet:
    """Read all images and their digits: the official training files, then the official test files."""
    return read_mnist_like(
        "mnist",
        folder,
        [str(digit) for digit in range(10)],
        MNIST_PUBLISHED,
        MNIST_MD5,
        verify=verify,
        partitions={
            "clean": fixed("clean", clean, PFEDME_CLIENTS, SEED),
            "paper-2020": fixed("paper-2020", paper_2020, PFEDME_CLIENTS, SEED),
            "fedu-100": fixed(
                "fedu-100", fedu_mnist, MNIST_CLIENTS, SEED, lambda groups: [fedu_note(groups, MNIST_USED)]
            ),
        },
        leaks={"paper-2020": "clients share images (nested prefixes)"},
    )


FASHION_PUBLISHED = "the four idx files are published at https://github.com/zalandoresearch/fashion-mnist"
CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
FASHION_MD5 = (
    ("f4a8712d7a061bf5bd6d2ca38dc4d50a", "9018921c3c673c538a1fc5bad174d6f9"),
    ("8181f5470baa50b63fa0f6fddb340f0a", "15d484375f8d13e6eb1aabb0c3f46965"),
)


@named("fashion-mnist", task="classification")
def fashion_mnist(
    folder: str | Path | None = None,
    partition: str = "dirichlet",
    *,
    normalisation: str = "pixel-zscore-train",
    shape: str = "flat",
    verify: bool = True,
    **options: Unpack[PartitionOptions],
) -> FederatedData:
    """Fashion-MNIST, 10 kinds of clothes, divided among clients by any partition.

    All other settings: see `PartitionOptions`.

    Args:
        folder: Contains `fashion-mnist/` with the idx files, raw or .gz; by default the environment variable
            IDIOLECT_DATA.
        partition: See `partition_images`.
        normalisation: See `normalise`.
        shape: Features 'flat' (784,) or 'image' (28, 28, 1).
        verify: Check that the files are the published ones, byte for byte.
    """
    pool = read_fashion_mnist(folder, verify=verify)
    return from_images(pool, partition, normalisation=normalisation, shape=shape, **options)


def read_fashion_mnist(folder: str | Path | None = None, *, verify: bool = True) -> ImageSet:
    """Read all images and their classes: the official training files, then the official test files."""
    return read_mnist_like("fashion-mnist", folder, CLASSES, FASHION_PUBLISHED, FASHION_MD5, verify=verify)


EMNIST_PUBLISHED = (
    "the idx files are in gzip.zip, published at https://www.nist.gov/itl/products-and-services/emnist-dataset"
)
PARTS = ("train", "test")


@dataclass(frozen=True)
class Variant:
    """The published sizes of one variant."""

    train: int
    test: int
    classes: int


VARIANTS = {
    "byclass": Variant(697_932, 116_323, 62),
    "bymerge": Variant(697_932, 116_323, 47),
    "balanced": Variant(112_800, 18_800, 47),
    "letters": Variant(124_800, 20_800, 26),
    "digits": Variant(240_000, 40_000, 10),
    "mnist": Variant(60_000, 10_000, 10),
}


@named("emnist", task="classification")
def emnist(
    folder: str | Path | None = None,
    partition: str = "dirichlet",
    *,
    variant: str = "byclass",
    parts: Sequence[str] = PARTS,
    normalisation: str = "pixel-zscore-train",
    shape: str = "flat",
    verify: bool = True,
    **options: Unpack[PartitionOptions],
) -> FederatedData:
    """EMNIST, up to 62 handwritten digits and letters, divided among clients by any partition.

    All other settings: see `PartitionOptions`.

    Args:
        folder: Contains `emnist/` with the idx files, raw or .gz; by default the environment variable IDIOLECT_DATA.
        variant: byclass, bymerge, balanced, letters, digits or mnist.
        parts: The official parts to use; ["test"] needs the files of the test part only.
        partition: See `partition_images`.
        normalisation: See `normalise`.
        shape: Features 'flat' (784,) or 'image' (28, 28, 1).
        verify: Check that the files have the published numbers of images.
    """
    pool = read_emnist(folder, variant=variant, parts=parts, verify=verify)
    return from_images(pool, partition, normalisation=normalisation, shape=shape, **options)


def read_emnist(
    folder: str | Path | None = None,
    *,
    variant: str = "byclass",
    parts: Sequence[str] = PARTS,
    verify: bool = True,
) -> ImageSet:
    """Read the images and classes of a variant, the training part first; the files hold each image transposed."""
    if variant not in VARIANTS:
        raise unknown("variant of EMNIST", variant, VARIANTS)
    for part in parts:
        if part not in PARTS:
            raise unknown("part of EMNIST", part, PARTS)
    require(len(parts) > 0, "emnist: parts must name 'train', 'test' or both")
    sizes = VARIANTS[variant]
    set_folder = data_folder(folder, "emnist", EMNIST_PUBLISHED)
    codes, classes = _mapping(set_folder, variant)
    used_parts = [part for part in PARTS if part in parts]
    hint = (
        EMNIST_PUBLISHED
        if len(used_parts) == 1
        else f'{EMNIST_PUBLISHED}; or name the part that is here: parts=["test"]'
    )
    by_part = {part: _part(set_folder, f"emnist-{variant}-{part}", codes, hint) for part in used_parts}
    for part, (images, _) in by_part.items():
        if verify and len(images) != getattr(sizes, part):
            raise DataError(
                f"{set_folder}: the {part} part of EMNIST {variant} has {len(images):,} images, the published one "
                f"{getattr(sizes, part):,}; {AGAIN}, or read it as it is with verify=False"
            )
    images, labels = joined(list(by_part.values()), set_folder)
    return ImageSet(
        name="emnist",
        images=images.reshape(len(images), -1),
        labels=labels,
        shape=(*images.shape[1:], 1),
        classes=classes,
        trained=len(by_part["train"][0]) if "train" in by_part else 0,
        test_share=sizes.test / (sizes.train + sizes.test),
        notes=tuple(
            f"{INCOMPLETE}the official {part} part of EMNIST {variant} ({getattr(sizes, part):,} images) is left out"
            for part in PARTS
            if part not in by_part
        ),
        arguments={"variant": variant, "parts": used_parts},
    )


def _part(where: Path, stem: str, codes: Int[np.ndarray, "classes"], hint: str) -> Part:
    """One part, its images upright (the files hold them transposed), its labels numbered from 0."""
    files = f"{stem}-images-idx3-ubyte", f"{stem}-labels-idx1-ubyte"
    images, labels = read_part(where, files, hint, highest=int(codes[-1]))
    if len(unnamed := np.setdiff1d(labels, codes)):
        raise DataError(f"{where / files[1]} has the label {unnamed[0]}, which the mapping file does not name")
    return np.ascontiguousarray(images.transpose(0, 2, 1)), np.searchsorted(codes, labels).astype(np.int32)


def _mapping(where: Path, variant: str) -> tuple[Int[np.ndarray, "classes"], tuple[str, ...]]:
    """The labels in the files, ascending, and the characters that they stand for (letters: 'Aa')."""
    path = require_gz(where, f"emnist-{variant}-mapping.txt", EMNIST_PUBLISHED)
    try:
        rows = sorted([int(word) for word in line.split()] for line in read_gz(path).splitlines() if line.strip())
        names = tuple("".join(map(chr, row[1:])) for row in rows)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{path} is not a mapping from labels to ASCII codes ({error}); {AGAIN}") from error
    codes = np.array([row[0] for row in rows])
    expected = VARIANTS[variant].classes
    if len(np.unique(codes)) != expected or not all(names):
        raise DataError(f"{path} must map {expected} labels to ASCII codes, it maps {len(set(names))}; {AGAIN}")
    return codes, names
