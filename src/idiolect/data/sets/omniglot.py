"""Omniglot from its original files: 1,623 handwritten characters of 50 alphabets, each drawn by 20 people."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from idiolect.data.divide.division import check_fractions, counts, of_splits, stream
from idiolect.data.federated import SPLITS, FederatedData
from idiolect.data.partition import Indices, Partition
from idiolect.data.sets.image_set import ImageSet
from idiolect.data.sets.images import from_images, partition_images
from idiolect.data.sets.omniglot_files import DRAWINGS, read_drawings

LEAK = "rotations of one drawing lie in training and in test data"
ROTATIONS = 4


def omniglot(
    folder: str | Path | None = None,
    split: str = "clean",
    *,
    labels: str = "client",
    size: int = 28,
    rotations: bool = True,
    antialias: bool = False,
    normalisation: str = "unit",
    shape: str = "image",
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
    verify: bool = True,
) -> FederatedData:
    """Omniglot, 50 alphabets as 50 clients with 14 to 55 characters each; strokes are 1 on 0.

    folder: contains `omniglot/` with images_background.zip and images_evaluation.zip; by default the environment
        variable IDIOLECT_DATA.
    split: 'clean' divides the drawings of each character; 'as-published' (PFLEGO) divides drawings and rotated copies
        together, so that a test sample's rotations are in training; or the path of a saved .npz.
    labels: 'client', each client numbers its characters from 0, or 'global', 1,623 classes.
    size: pixels of a side, 105 as published; smaller images by bilinear interpolation: with `antialias` over all
        pixels that a new pixel covers, else over the nearest four, as in PFLEGO's published code.
    rotations: add each drawing rotated by 90, 180 and 270 degrees, as samples of the same class.
    test, validation: fractions of each character's drawings (or samples), drawn by split_seed.
    normalisation: see `normalise`. shape: features 'image' (size, size, 1) or 'flat'.
    verify: check that the files contain the published numbers of alphabets and characters.
    """
    pool = read_omniglot(folder, size=size, rotations=rotations, antialias=antialias, verify=verify)
    fractions = {} if split.endswith(".npz") else {"test": test, "validation": validation, "split_seed": split_seed}
    return from_images(
        pool, split, normalisation=normalisation, shape=shape, labels=labels, keyword="split", **fractions
    )


def omniglot_partition(
    folder: str | Path | None = None,
    split: str = "clean",
    *,
    size: int = 28,
    rotations: bool = True,
    antialias: bool = False,
    verify: bool = True,
    **fractions: Any,
) -> Partition:
    """The partition that `omniglot` makes from the same arguments, for example to save it."""
    pool = read_omniglot(folder, size=size, rotations=rotations, antialias=antialias, verify=verify)
    return partition_images(pool, split, **fractions)


def read_omniglot(
    folder: str | Path | None = None,
    *,
    size: int = 28,
    rotations: bool = True,
    antialias: bool = False,
    verify: bool = True,
) -> ImageSet:
    """All samples, 255 for ink: character by character, drawing by drawing, rotated by 0, 90, 180, 270 degrees."""
    drawings, classes = read_drawings(folder, size=size, antialias=antialias, verify=verify)
    turns = ROTATIONS if rotations else 1
    images = np.stack([np.rot90(drawings, turn, axes=(1, 2)) for turn in range(turns)], axis=1)
    return ImageSet(
        name="omniglot",
        images=images.reshape(len(drawings) * turns, -1),
        labels=np.repeat(np.arange(len(classes), dtype=np.int32), DRAWINGS * turns),
        shape=(size, size, 1),
        classes=classes,
        trained=0,
        test_share=0.25,
        partitions={name: partial(_divide, name=name, turns=turns) for name in ("clean", "as-published")},
        common=False,
        leaks={"as-published": LEAK} if rotations else {},
        arguments={"size": size, "rotations": rotations, "antialias": antialias},
    )


def _divide(
    pool: ImageSet,
    name: str,
    turns: int,
    *,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
) -> Partition:
    """Each alphabet is a client; each character's units (drawings if clean, else samples) are divided at random."""
    check_fractions(test, validation)
    clean = name == "clean"
    samples = np.arange(len(pool.labels)).reshape(len(pool.classes), DRAWINGS, turns)
    units = _distinct(pool, samples) if clean else list(samples.reshape(len(pool.classes), -1, 1))
    alphabets = list(dict.fromkeys(_alphabet(label) for label in pool.classes))
    parts: list[dict[str, list[Indices]]] = [{split: [] for split in SPLITS} for _ in alphabets]
    random = [stream(split_seed, 1, client) for client in range(len(alphabets))]
    for label, drawn in zip(pool.classes, units, strict=True):
        client = alphabets.index(_alphabet(label))
        num_train, num_validation, _ = counts(len(drawn), test, validation)
        pieces = np.split(random[client].permutation(drawn), [num_train, num_train + num_validation])
        for split, piece in zip(SPLITS, pieces, strict=True):
            parts[client][split].append(np.sort(piece.ravel()))
    groups = {split: [np.concatenate(part[split]) for part in parts] for split in SPLITS}
    notes: list[str] = []
    if clean and (repeated := samples[..., 0].size - sum(map(len, units))):
        notes.append(f"drawings that equal another one of their character are left out: {repeated}")
    if name in pool.leaks:
        drawing = np.arange(len(pool.labels)) // turns
        shared = np.isin(drawing[np.concatenate(groups["test"])], drawing[np.concatenate(groups["train"])])
        notes.append(f"{LEAK}, as in the published code: so it is for {shared.mean():.1%} of the test samples")
    return of_splits(
        groups,
        pool.images,
        pool.labels,
        name=name,
        clients=alphabets,
        parameters={"test": test, "validation": validation, "split_seed": split_seed},
        notes=notes,
    )


def _distinct(pool: ImageSet, samples: Int[np.ndarray, "characters 20 turns"]) -> list[Int[np.ndarray, "_ turns"]]:
    """Each character's drawings, except those that equal an earlier one or its rotation."""
    distinct: list[Int[np.ndarray, "_ turns"]] = []
    for drawings in samples:
        keys = [min(pool.images[sample].tobytes() for sample in rotations) for rotations in drawings]
        distinct.append(drawings[[keys.index(key) == place for place, key in enumerate(keys)]])
    return distinct


def _alphabet(label: str) -> str:
    return label.rpartition("/")[0]
