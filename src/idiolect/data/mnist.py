"""MNIST from its original files: 70,000 images of digits, the official train and test sets merged."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int32, UInt8

from idiolect.data.divide import divide, make
from idiolect.data.federated import SPLITS, FederatedData
from idiolect.data.folder import data_folder
from idiolect.data.idx import find_idx, read_idx
from idiolect.data.mnist_paper import CLIENTS, SEED, clean, paper_2020
from idiolect.data.normalise import FITTED_ON, normalise
from idiolect.data.partition import Partition, apply
from idiolect.data.partitioners import PARTITIONERS
from idiolect.errors import DataError, require, unknown

PUBLISHED = (
    "the four idx files are published at http://yann.lecun.com/exdb/mnist/ and mirrored at "
    "https://storage.googleapis.com/cvdf-datasets/mnist/"
)
# md5 of the uncompressed files: the gzip files differ between mirrors (they carry a date).
FILES = (
    ("train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"),
    ("train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"),
    ("t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"),
    ("t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"),
)
PAPER = {"clean": clean, "paper-2020": paper_2020}
PARTITIONS = (*PAPER, *PARTITIONERS)


def mnist(
    folder: str | Path | None = None,
    partition: str = "clean",
    *,
    normalisation: str = "pixel-zscore-train",
    shape: str = "flat",
    clients: int | None = None,
    seed: int = 0,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
    verify: bool = True,
    **parameters: Any,
) -> FederatedData:
    """MNIST digits dealt to 20 clients with two digits each, or by any partitioner.

    folder: holds `mnist/` with the idx files, raw or .gz; else the environment variable IDIOLECT_DATA.
    partition: 'clean' (disjoint), 'paper-2020' (pFedMe's published split, whose clients share images), the name
        of a partitioner with its `parameters` (dirichlet: concentration=0.3), or the path of a saved .npz,
        which fixes clients, seeds and fractions.
    seed: deals the images to the clients; 'clean' and 'paper-2020' are fixed, they do not depend on it.
    split_seed: divides each client's images into train, validation and test.
    normalisation: see `normalise`; the published code uses 'pixel-zscore-all', which sees the test images.
    shape: features 'flat' (784,) or 'image' (28, 28, 1).
    verify: the files must be the published ones, byte for byte.
    """
    if shape not in ("flat", "image"):
        raise unknown("shape", shape, ("flat", "image"))
    images, labels = read_mnist(folder, verify=verify)
    dealt = _partition(
        images,
        labels,
        partition,
        clients=clients,
        seed=seed,
        test=test,
        validation=validation,
        split_seed=split_seed,
        **parameters,
    )
    encode = normalise(normalisation, images, dealt.train.index)
    side = round(images.shape[1] ** 0.5)

    def features(rows: UInt8[np.ndarray, "n pixels"]) -> Float[np.ndarray, "n ..."]:
        encoded = encode(rows)
        return encoded if shape == "flat" else encoded.reshape(len(rows), side, side, 1)

    return apply(
        dealt,
        images,
        labels,
        name=f"mnist/{dealt.name}",
        task="classification",
        classes=[str(digit) for digit in range(10)],
        encode=features,
        provenance={
            "source": "mnist",
            "arguments": {
                "partition": partition,
                "normalisation": normalisation,
                "shape": shape,
                "clients": clients,
                "seed": seed,
                "test": test,
                "validation": validation,
                "split_seed": split_seed,
                **parameters,
            },
            "normalisation": {"name": normalisation, "fitted_on": FITTED_ON[normalisation]},
            "leaks": ["clients share images (nested prefixes)"] if dealt.name == "paper-2020" else [],
        },
    )


def mnist_partition(
    folder: str | Path | None = None, partition: str = "clean", *, verify: bool = True, **arguments: Any
) -> Partition:
    """The partition that `mnist` uses for the same arguments, to save as an index file."""
    images, labels = read_mnist(folder, verify=verify)
    return _partition(images, labels, partition, **arguments)


def read_mnist(
    folder: str | Path | None = None, *, verify: bool = True
) -> tuple[UInt8[np.ndarray, "n pixels"], Int32[np.ndarray, "n"]]:
    """All images as bytes and their digits: the official training files, then the official test files."""
    where = data_folder(folder, "mnist", PUBLISHED)
    paths = [find_idx(where, name, PUBLISHED) for name, _ in FILES]
    arrays = [read_idx(path, md5=md5 if verify else None) for path, (_, md5) in zip(paths, FILES, strict=True)]
    for i in (0, 2):
        images, labels = arrays[i], arrays[i + 1]
        if images.ndim != 3 or labels.ndim != 1 or images.dtype != np.uint8 or labels.dtype != np.uint8:
            raise DataError(
                f"{paths[i]} and {paths[i + 1]} must hold images and labels as bytes, their shapes are "
                f"{images.shape} and {labels.shape}; {PUBLISHED}"
            )
        if len(images) != len(labels):
            raise DataError(f"{paths[i]} has {len(images)} images, {paths[i + 1]} has {len(labels)} labels")
    labels = np.concatenate([arrays[1], arrays[3]]).astype(np.int32)
    if labels.max(initial=0) > 9:
        raise DataError(f"{paths[1]} or {paths[3]} has a label above 9; it is not MNIST; {PUBLISHED}")
    images = np.concatenate([arrays[0], arrays[2]])
    return images.reshape(len(images), -1), labels


def _partition(
    images: UInt8[np.ndarray, "n pixels"],
    labels: Int32[np.ndarray, "n"],
    partition: str,
    *,
    clients: int | None = None,
    **arguments: Any,
) -> Partition:
    if partition.endswith(".npz"):
        taken = ("seed", "test", "validation", "split_seed")
        extra = [key for key in arguments if key not in taken] + ["clients"] * (clients is not None)
        require(not extra, f"the saved partition {partition} fixes everything: leave out {', '.join(extra)}")
        return Partition.load(partition)
    if partition not in PARTITIONS:
        raise unknown("partition", partition, PARTITIONS)
    if partition not in PAPER:
        return make(images, labels, partition, clients=CLIENTS if clients is None else clients, **arguments)
    require(clients in (None, CLIENTS), f"partition '{partition}' has {CLIENTS} clients, not {clients}")
    known = ("seed", "test", "validation", "split_seed")
    for key in arguments:
        if key not in known:
            raise unknown(f"key for partition '{partition}'", key, known)
    arguments.pop("seed", None)
    dealt = divide(PAPER[partition](labels), images, labels, name=partition, seed=SEED, **arguments)
    return _with_overlap(dealt) if partition == "paper-2020" else dealt


def _with_overlap(partition: Partition) -> Partition:
    """Say in the partition's notes how many images clients share, and how many test images leak."""
    trained = np.zeros(partition.statistics["distinct"] + partition.statistics["unused"], dtype=bool)
    trained[partition.train.index] = True
    # A client's own training and test samples are disjoint, so every training copy is another client's.
    leaked = float(trained[partition.test.index].mean())
    slots = sum(len(partition.rows(split).index) for split in SPLITS)
    note = (
        f"clients share images by design, as in the published code: {slots:,} samples are "
        f"{partition.statistics['distinct']:,} distinct images, and {leaked:.1%} of the test samples are "
        "training samples of another client"
    )
    return replace(partition, notes=(*partition.notes, note))
