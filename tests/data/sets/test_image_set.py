"""A pool of images, and how it can be divided: the keys of `PartitionOptions` are those that a partition takes."""

import inspect

import numpy as np

from idiolect.data.divide.division import make_partition
from idiolect.data.divide.partitioners import PARTITIONERS
from idiolect.data.sets.image_set import ImageSet, PartitionOptions
from idiolect.data.sets.images import from_images, partition_images

SKIP = {"x", "y", "pool", "partition", "partitioner", "labels", "parameters", "arguments", "rng", "options"}
OF_IMAGES = {"normalisation", "shape", "keyword"}


def keywords(*functions: object) -> set[str]:
    """The arguments by keyword of functions."""
    return {name for function in functions for name in inspect.signature(function).parameters} - SKIP


def test_the_options_are_the_settings_of_every_partition_and_no_other() -> None:
    taken = keywords(make_partition, partition_images, from_images, *PARTITIONERS.values()) - OF_IMAGES
    assert set(PartitionOptions.__annotations__) == taken | {"labels"}


def test_a_pool_has_only_the_common_partitions_and_no_leaks_unless_it_says_so() -> None:
    images, labels = np.zeros((4, 6), np.uint8), np.array([0, 1, 0, 1], np.int32)
    pool, other = (
        ImageSet("tiny", images, labels, (2, 3, 1), ("a", "b"), trained=3, test_share=0.25) for _ in range(2)
    )
    assert pool.common
    assert (pool.partitions, pool.leaks, pool.notes, pool.arguments) == ({}, {}, (), {})
    assert pool.partitions is not other.partitions
    assert pool != other  # pools are compared as objects: their arrays are large
    assert hash(pool) != hash(other) or pool is other
