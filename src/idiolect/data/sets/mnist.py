"""MNIST from its original files: 70,000 images of digits, the official train and test sets merged."""

from pathlib import Path
from typing import Any, Unpack

from idiolect.data.federated import FederatedData
from idiolect.data.files.idx_set import read_mnist_like
from idiolect.data.partition import Partition
from idiolect.data.sets.image_set import ImageSet, PartitionOptions
from idiolect.data.sets.images import fixed, from_images, partition_images
from idiolect.data.sets.papers.fedu import MNIST_CLIENTS, MNIST_USED, fedu_mnist, fedu_note
from idiolect.data.sets.papers.pfedme import CLIENTS, SEED, clean, paper_2020

PUBLISHED = (
    "the four idx files are published at http://yann.lecun.com/exdb/mnist/ and mirrored at "
    "https://storage.googleapis.com/cvdf-datasets/mnist/"
)
MD5 = (
    ("6bbc9ace898e44ae57da46a324031adb", "a25bea736e30d166cdddb491f175f624"),
    ("2646ac647ad5339dbf082846283269ea", "27ae3e4e09519cfbb04c329615203637"),
)


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

    folder: contains `mnist/` with the idx files, raw or .gz; by default the environment variable IDIOLECT_DATA.
    partition: 'clean' (disjoint), 'paper-2020' (pFedMe's published split, whose clients share images), 'fedu-100'
        (FedU's 100 clients, disjoint), or what `partition_images` offers: the name of a partition with its parameters
        (dirichlet: concentration=0.3), or the path of a saved .npz, which fixes clients, seeds and fractions.
        'clean', 'paper-2020' and 'fedu-100' are fixed: they do not depend on the seed.
    normalisation: see `normalise`; pFedMe's published code uses 'pixel-zscore-all', which sees the test images.
    shape: features 'flat' (784,) or 'image' (28, 28, 1).
    verify: check that the files are the published ones, byte for byte.
    All other settings: see `PartitionOptions`.
    """
    pool = read_mnist(folder, verify=verify)
    return from_images(pool, partition, normalisation=normalisation, shape=shape, **options)


def mnist_partition(
    folder: str | Path | None = None, partition: str = "clean", *, verify: bool = True, **arguments: Any
) -> Partition:
    """The partition that `mnist` makes from the same arguments, for example to save it."""
    return partition_images(read_mnist(folder, verify=verify), partition, **arguments)


def read_mnist(folder: str | Path | None = None, *, verify: bool = True) -> ImageSet:
    """All images and their digits: the official training files, then the official test files."""
    return read_mnist_like(
        "mnist",
        folder,
        [str(digit) for digit in range(10)],
        PUBLISHED,
        MD5,
        verify=verify,
        partitions={
            "clean": fixed("clean", clean, CLIENTS, SEED),
            "paper-2020": fixed("paper-2020", paper_2020, CLIENTS, SEED),
            "fedu-100": fixed(
                "fedu-100", fedu_mnist, MNIST_CLIENTS, SEED, lambda groups: [fedu_note(groups, MNIST_USED)]
            ),
        },
        leaks={"paper-2020": "clients share images (nested prefixes)"},
    )
