"""A pool of images with their classes, and the partition settings that all image sets share."""

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
    trained: the first `trained` images are of the official training part, the others of the test part.
    test_share: the official test part's share of all published images.
    partitions: the set's own partitions; common: whether the common ones (PFLEGO's, partitioners) are allowed too.
    leaks: known leaks by design, by partition name.
    arguments: how the pool was read, except its folder; part of the provenance.
    """

    name: str
    images: UInt8[np.ndarray, "n pixels"]
    labels: Int32[np.ndarray, "n"]
    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    trained: int
    test_share: float
    partitions: Mapping[str, "ImagePartitioner"] = field(default_factory=dict[str, "ImagePartitioner"])
    common: bool = True
    leaks: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


ImagePartitioner: TypeAlias = Callable[..., Partition]
"""Maps an image set, and the partition's own settings by keyword, to a partition."""


class PartitionOptions(TypedDict, total=False):
    """How an image set is divided among clients; a partition refuses settings that it does not have.

    clients: the number of clients (by default the partition's own); seed: assigns the images to the clients.
    test, validation: fractions of a client's images; split_seed: draws them.
    labels: 'global', or 'client': each client numbers the classes that it holds from 0.
    downsample, downsample_test: see `downsample`; the clients are drawn by split_seed.
    Of single partitioners: concentration, size (dirichlet, dirichlet_clients), k (labels_per_client),
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
