"""Read Omniglot's two archives, images_background.zip and images_evaluation.zip, without extracting them.

Layout: <set>/<Alphabet>/characterNN/IIII_SS.png, 105 x 105 pixels, black ink on white, SS the number of the person.
"""

import io
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image

from idiolect.core.errors import DataError, require
from idiolect.data.files.archive import Members, open_zip
from idiolect.data.files.folder import data_folder
from idiolect.data.files.gz import AGAIN

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
