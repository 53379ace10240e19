"""Federated data: published data sets and your own, their division among clients, and the leakage audit.

Public is what `__all__` lists; the modules below this package are internal and may change.
"""

from idiolect.data.audit import Audit, audit
from idiolect.data.divide.division import downsample, make_partition
from idiolect.data.divide.missing import MissingPattern, drop_modalities
from idiolect.data.divide.newcomers import hold_out
from idiolect.data.divide.partitioners import PARTITIONERS
from idiolect.data.encode.labels import number_own_labels
from idiolect.data.federated import SPLITS, FederatedData, Split
from idiolect.data.files.folder import FolderWriter, load_data, save_data
from idiolect.data.modalities import Modalities
from idiolect.data.partition import Partition, apply_partition
from idiolect.data.schema.schema import Schema
from idiolect.data.sets.arrays import from_arrays
from idiolect.data.sets.cifar10 import cifar10, read_cifar10
from idiolect.data.sets.encoded import encode_table
from idiolect.data.sets.har.fedmultimodal import har_fedmultimodal
from idiolect.data.sets.har.har import har, har_modalities
from idiolect.data.sets.image_set import ImageSet
from idiolect.data.sets.images import from_images, partition_images
from idiolect.data.sets.like import encode_like
from idiolect.data.sets.mixed_effects import mixed_effects
from idiolect.data.sets.mnist import (
    emnist,
    fashion_mnist,
    mnist,
    mnist_partition,
    read_emnist,
    read_fashion_mnist,
    read_mnist,
)
from idiolect.data.sets.mosei.mosei import mosei, mosi
from idiolect.data.sets.omniglot import omniglot, omniglot_partition
from idiolect.data.sets.registry import SOURCES, describe_data, load
from idiolect.data.sets.synthetic import synthetic
from idiolect.data.sets.table import from_table, table_partition
from idiolect.data.sets.tasks import landmine, school, vehicle

__all__ = [
    "PARTITIONERS",
    "SOURCES",
    "SPLITS",
    "Audit",
    "FederatedData",
    "FolderWriter",
    "ImageSet",
    "MissingPattern",
    "Modalities",
    "Partition",
    "Schema",
    "Split",
    "apply_partition",
    "audit",
    "cifar10",
    "describe_data",
    "downsample",
    "drop_modalities",
    "emnist",
    "encode_like",
    "encode_table",
    "fashion_mnist",
    "from_arrays",
    "from_images",
    "from_table",
    "har",
    "har_fedmultimodal",
    "har_modalities",
    "hold_out",
    "landmine",
    "load",
    "load_data",
    "make_partition",
    "mixed_effects",
    "mnist",
    "mnist_partition",
    "mosei",
    "mosi",
    "number_own_labels",
    "omniglot",
    "omniglot_partition",
    "partition_images",
    "read_cifar10",
    "read_emnist",
    "read_fashion_mnist",
    "read_mnist",
    "save_data",
    "school",
    "synthetic",
    "table_partition",
    "vehicle",
]
