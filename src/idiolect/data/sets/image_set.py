"""A pool of images with their classes, and what every image set can be asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Int32, UInt8
from typing_extensions import TypedDict  # pydantic needs it before Python 3.12

from idiolect.data.partition import Partition


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images as bytes and their classes, in the order of the published files.

    images: (n, pixels), one row an image; shape: its (height, width, channels), channels last.
    trained: how many, from the first on, are of the official training part; the others are of the test part.
    test_share: the official test part's share of all published images.
    partitions: those that this set has beside the common ones; common: whether the common ones may deal it.
    leaks: by the name of a partition, what leaks by its design.
    arguments: how the pool was read, beyond its folder; part of the provenance.
    """

    name: str
    images: UInt8[np.ndarray, "n pixels"]
    labels: Int32[np.ndarray, "n"]
    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    trained: int
    test_share: float
    partitions: Mapping[str, "Deal"] = field(default_factory=dict[str, "Deal"])
    common: bool = True
    leaks: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


Deal: TypeAlias = Callable[..., Partition]
"""From (image set, its own arguments by keyword) to a partition."""


class Dealing(TypedDict, total=False):
    """How an image set is dealt to clients; a partition refuses what it has no use for.

    clients: how many (the partition's own number by default); seed: deals the images to the clients.
    test, validation: fractions of a client's images; split_seed: divides them.
    labels: 'global', or 'client': each client numbers the classes that it holds from 0.
    downsample, downsample_test: see `downsample`; the clients are drawn by split_seed.
    The others belong to partitioners: concentration, size (dirichlet, dirichlet_clients), k (labels_per_client),
    sigma (lognormal_sizes), minimum.
    """

    clients: int | None
    seed: int
    test: float
    validation: float
    split_seed: int
    labels: str | None
    downsample: float | None
    downsample_test: float | None
    concentration: float
    size: int | None
    k: int
    sigma: float
    minimum: int
