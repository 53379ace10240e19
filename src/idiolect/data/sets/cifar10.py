"""CIFAR-10 from its original files: 60,000 colour images, the official training and test batches merged."""

import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from jaxtyping import Int32, UInt8

from idiolect.core.errors import DataError, require, unknown
from idiolect.core.plugins import named
from idiolect.data.federated import INCOMPLETE, FederatedData
from idiolect.data.files.archive import AGAIN, data_folder, find_gz, read_gz
from idiolect.data.files.safe_pickle import load_dictionary
from idiolect.data.sets.image_set import ImageSet, PartitionOptions
from idiolect.data.sets.images import fixed, from_images
from idiolect.data.sets.published import CIFAR_CLIENTS, CIFAR_USED, SEED, fedu_cifar, fedu_note

PUBLISHED = "cifar-10-python.tar.gz is published at https://www.cs.toronto.edu/~kriz/cifar.html"
FOLDER, ARCHIVE, META = "cifar-10-batches-py", "cifar-10-python.tar.gz", "batches.meta"
BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
SHAPE = (32, 32, 3)
IMAGES, CLASSES = 10_000, 10


@named("cifar10", task="classification")
def cifar10(
    folder: str | Path | None = None,
    partition: str = "dirichlet",
    *,
    batches: Sequence[str] = BATCHES,
    normalisation: str = "channel-zscore-train",
    shape: str = "image",
    verify: bool = True,
    **options: Unpack[PartitionOptions],
) -> FederatedData:
    """CIFAR-10, colour images of 10 classes, divided among clients by any partition.

    All other settings: see `PartitionOptions`.

    Args:
        folder: Contains `cifar10/` with cifar-10-python.tar.gz or the files extracted from it, raw or .gz; by default
            the environment variable IDIOLECT_DATA.
        partition: 'fedu-20' (FedU's 20 clients with three classes each, disjoint), or what `partition_images` offers.
        batches: The files to use, of data_batch_1 to 5 and test_batch.
        normalisation: See `normalise`.
        shape: Features 'image' (32, 32, 3) or 'flat' (3072,).
        verify: Check that the files have the published numbers of images.
    """
    pool = read_cifar10(folder, batches=batches, verify=verify)
    return from_images(pool, partition, normalisation=normalisation, shape=shape, **options)


def read_cifar10(
    folder: str | Path | None = None, *, batches: Sequence[str] = BATCHES, verify: bool = True
) -> ImageSet:
    """Read the images and classes of the batches, in the order of `BATCHES`; the pickles cannot run code."""
    for name in batches:
        if name not in BATCHES:
            raise unknown("batch of CIFAR-10", name, BATCHES)
    require(len(batches) > 0, "cifar10: batches must name at least one")
    used_batches = [name for name in BATCHES if name in batches]
    set_folder = data_folder(folder, "cifar10", PUBLISHED)
    files = _files(set_folder, [META, *used_batches])
    classes = _names(f"{set_folder}, {META}", files.pop(META))
    parts = {name: _batch(f"{set_folder}, {name}", content, verify) for name, content in files.items()}
    left_out = [name for name in BATCHES if name not in used_batches]
    return ImageSet(
        name="cifar10",
        images=np.concatenate([parts[name][0] for name in used_batches]),
        labels=np.concatenate([parts[name][1] for name in used_batches]),
        shape=SHAPE,
        classes=classes,
        trained=sum(len(parts[name][1]) for name in used_batches if name != "test_batch"),
        test_share=1 / len(BATCHES),
        partitions={
            "fedu-20": fixed(
                "fedu-20", fedu_cifar, CIFAR_CLIENTS, SEED, lambda groups: [fedu_note(groups, CIFAR_USED)]
            )
        },
        arguments={"batches": used_batches},
        notes=(f"{INCOMPLETE}only a part of CIFAR-10 is used, without {', '.join(left_out)}",) * bool(left_out),
    )


def _files(where: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The content of the files, from the folder, the extracted folder in it, or the archive."""
    contents: dict[str, bytes] = {}
    for name in names:
        paths = [path for folder in (where / FOLDER, where) if (path := find_gz(folder, name))]
        if paths:
            contents[name] = read_gz(paths[0])
    missing = [name for name in names if name not in contents]
    if missing and (where / ARCHIVE).is_file():
        contents |= _from_archive(where / ARCHIVE, missing)
        missing = [name for name in names if name not in contents]
    if missing:
        available = [name for name in names if name in contents and name != META]
        part = f"; or name what is here: batches={available}" if available and META in contents else ""
        raise DataError(f"{where} lacks {', '.join(missing)}; {PUBLISHED}{part}")
    return contents


def _from_archive(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The content of members of the published archive."""
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                name = member.name.rpartition("/")[2]
                if name in names and (file := archive.extractfile(member)) is not None:
                    contents[name] = file.read()
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise DataError(f"{path} is truncated or damaged ({error}); {AGAIN}") from error
    return contents


def _batch(where: str, content: bytes, verify: bool) -> tuple[UInt8[np.ndarray, "n pixels"], Int32[np.ndarray, "n"]]:
    """One batch: images with the channels last (the files have them first), and labels."""
    batch = load_dictionary(content, where)
    images, labels = batch.get("data"), np.asarray(batch.get("labels"))
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.shape[1:] != (np.prod(SHAPE),):
        raise DataError(f"{where} has no 'data' of 3072 bytes an image; {AGAIN}")
    if labels.shape != (len(images),) or labels.dtype.kind not in "iu":
        raise DataError(f"{where} needs one label for each of its {len(images)} images; {AGAIN}")
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= CLASSES:
        raise DataError(f"{where} has a label outside 0..{CLASSES - 1}; it is another data set; {PUBLISHED}")
    if verify and len(images) != IMAGES:
        raise DataError(
            f"{where} has {len(images):,} images, the published file {IMAGES:,}; {AGAIN}, or read it as it is with "
            "verify=False"
        )
    height, width, channels = SHAPE
    upright = images.reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
    return upright.reshape(len(images), -1), labels.astype(np.int32)


def _names(where: str, content: bytes) -> tuple[str, ...]:
    names: Any = load_dictionary(content, where).get("label_names")
    if not isinstance(names, list) or len(names) != CLASSES:
        raise DataError(f"{where} has no 'label_names' of {CLASSES} classes; {AGAIN}")
    return tuple(map(str, names))
