"""Fashion-MNIST from its original files: 70,000 images of clothes, the official train and test sets merged."""

from pathlib import Path
from typing import Unpack

from idiolect.data.federated import FederatedData
from idiolect.data.files.idx_set import read_mnist_like
from idiolect.data.sets.image_set import ImageSet, PartitionOptions
from idiolect.data.sets.images import from_images

PUBLISHED = "the four idx files are published at https://github.com/zalandoresearch/fashion-mnist"
CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
MD5 = (
    ("f4a8712d7a061bf5bd6d2ca38dc4d50a", "9018921c3c673c538a1fc5bad174d6f9"),
    ("8181f5470baa50b63fa0f6fddb340f0a", "15d484375f8d13e6eb1aabb0c3f46965"),
)


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

    folder: contains `fashion-mnist/` with the idx files, raw or .gz; by default the environment variable
        IDIOLECT_DATA.
    partition: see `partition_images`. normalisation: see `normalise`.
    shape: features 'flat' (784,) or 'image' (28, 28, 1).
    verify: check that the files are the published ones, byte for byte.
    All other settings: see `PartitionOptions`.
    """
    pool = read_fashion_mnist(folder, verify=verify)
    return from_images(pool, partition, normalisation=normalisation, shape=shape, **options)


def read_fashion_mnist(folder: str | Path | None = None, *, verify: bool = True) -> ImageSet:
    """All images and their classes: the official training files, then the official test files."""
    return read_mnist_like("fashion-mnist", folder, CLASSES, PUBLISHED, MD5, verify=verify)
