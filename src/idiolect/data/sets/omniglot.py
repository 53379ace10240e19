"""Omniglot from its original files: 1,623 handwritten characters of 50 alphabets, each drawn by 20 people.

The two archives, images_background.zip and images_evaluation.zip, are read without extracting them. Layout:
<set>/<Alphabet>/characterNN/IIII_SS.png, 105 x 105 pixels, black ink on white, SS the number of the person.
"""

import io
import math
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int, UInt8
from PIL import Image

from idiolect.core.errors import DataError, require
from idiolect.core.plugins import named
from idiolect.data.divide.division import check_fractions, counts, of_splits, stream
from idiolect.data.federated import SPLITS, FederatedData
from idiolect.data.files.archive import AGAIN, Members, data_folder, open_zip
from idiolect.data.partition import Indices, Partition
from idiolect.data.sets.image_set import ImageSet
from idiolect.data.sets.images import from_images, partition_images

PUBLISHED = "images_background.zip and images_evaluation.zip are published at https://github.com/brendenlake/omniglot"
SIDE, DRAWINGS = 105, 20
SETS = {"images_background": (30, 964), "images_evaluation": (20, 659)}  # alphabets, characters
_MEMBER = re.compile(r"(?:.*/)?([^/]+)/(character\d+)/[^/]*_(\d+)\.png")


def read_drawings(
    folder: str | Path | None, *, size: int, antialias: bool, verify: bool
) -> tuple[UInt8[np.ndarray, "drawings size size"], tuple[str, ...]]:
    """The 20 drawings of each character, 255 for ink, and the characters' names 'Alphabet/characterNN'."""
    require(1 <= size <= SIDE, f"omniglot: size must lie between 1 and {SIDE} pixels, it is {size}")
    set_folder = data_folder(folder, "omniglot", PUBLISHED)
    paths = [set_folder / f"{name}.zip" for name in SETS]
    if missing := [path.name for path in paths if not path.is_file()]:
        raise DataError(f"{set_folder} lacks {', '.join(missing)}; {PUBLISHED}")
    drawings: list[UInt8[np.ndarray, "20 size size"]] = []
    classes: list[str] = []
    for path, expected in zip(paths, SETS.values(), strict=True):
        before = len(classes)
        for name, ink in _characters(path):
            classes.append(name)
            drawings.append(_resized(ink, size, antialias))
        sizes = len({name.rpartition("/")[0] for name in classes[before:]}), len(classes) - before
        if verify and sizes != expected:
            raise DataError(
                f"{path} has {sizes[0]} alphabets and {sizes[1]} characters, the published file {expected[0]} and "
                f"{expected[1]}; {AGAIN}, or read it as it is with verify=False"
            )
    if len(set(classes)) < len(classes):
        raise DataError(f"{' and '.join(map(str, paths))} hold the same characters; {AGAIN}")
    return np.concatenate(drawings), tuple(classes)


def _characters(path: Path) -> Iterator[tuple[str, Bool[np.ndarray, "20 105 105"]]]:
    """Every character of an archive with its drawings, in the order of names; True where there is ink."""
    archive = open_zip(path, str(path))
    members = Members(str(path), "", frozenset(archive.namelist()), archive)
    files: dict[str, dict[int, str]] = {}
    for name in sorted(members.names):
        if (match := _MEMBER.fullmatch(name)) and not name.startswith("__MACOSX"):
            files.setdefault(f"{match[1]}/{match[2]}", {})[int(match[3])] = name
    if not files:
        raise DataError(f"{path} has no <Alphabet>/characterNN/*.png inside; {PUBLISHED}")
    for character, drawn in files.items():
        if len(drawn) != DRAWINGS:
            raise DataError(f"{path}: {character} has {len(drawn)} drawings, not {DRAWINGS}; {AGAIN}")
        yield character, np.stack([_ink(members, drawn[person]) for person in sorted(drawn)])


def _ink(members: Members, name: str) -> Bool[np.ndarray, "105 105"]:
    content = members.read(name, PUBLISHED)
    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
            if image.size != (SIDE, SIDE):
                raise DataError(f"{members.where}: {name} has {image.size} pixels, not {SIDE} x {SIDE}; {AGAIN}")
            return np.asarray(image.convert("L")) < 128
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{members.where}: {name} is not a readable PNG ({error}); {AGAIN}") from error


def _resized(ink: Bool[np.ndarray, "n 105 105"], size: int, antialias: bool) -> UInt8[np.ndarray, "n size size"]:
    """Bilinear interpolation between pixel centres 1/2, 3/2, ...; values 0 to 255, 255 for ink.

    The weight of a pixel falls linearly to 0 at the distance `reach` from the new pixel's centre.
    """
    scale = SIDE / size
    reach = scale if antialias else 1.0
    centres = ((np.arange(size) + 0.5) * scale - 0.5)[:, None]
    places = np.floor(centres - reach).astype(np.int64) + 1 + np.arange(math.ceil(2 * reach))
    weights = np.maximum(0.0, 1 - np.abs(places - centres) / reach) * ((places >= 0) & (places < SIDE))
    weights = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)[..., None]
    places = np.clip(places, 0, SIDE - 1)
    images = ink.astype(np.float32)
    for _ in range(2):  # rows, then columns
        images = (images[:, places] * weights).sum(axis=2).swapaxes(1, 2)
    return np.rint(255 * images).astype(np.uint8)


LEAK = "rotations of one drawing are in training and in test data"
ROTATIONS = 4


@named("omniglot", task="classification")
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

    Args:
        folder: Contains `omniglot/` with images_background.zip and images_evaluation.zip; by default the environment
            variable IDIOLECT_DATA.
        split: 'clean' divides the drawings of each character; 'as-published' (PFLEGO) divides drawings and rotated
            copies together, so that a test sample's rotations are in training; or the path of a saved .npz.
        labels: 'client', each client numbers its characters from 0, or 'global', 1,623 classes.
        size: Pixels of a side, 105 as published; smaller images by bilinear interpolation: with `antialias` over all
            pixels that a new pixel covers, else over the nearest four, as in PFLEGO's published code.
        rotations: Add each drawing rotated by 90, 180 and 270 degrees, as samples of the same class.
        test: The fraction of each character's drawings (or samples) for testing, drawn by split_seed.
        validation: The fraction for validation.
        normalisation: See `normalise`.
        shape: Features 'image' (size, size, 1) or 'flat'.
        verify: Check that the files contain the published numbers of alphabets and characters.
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
    """Return the partition that `omniglot` makes from the same arguments, for example to save it."""
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
