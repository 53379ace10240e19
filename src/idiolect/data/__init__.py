"""Federated data: where they come from, how they are divided, and what leaks between their parts."""

from idiolect.data.arrays import from_arrays
from idiolect.data.audit import Audit, audit
from idiolect.data.cifar10 import cifar10, read_cifar10
from idiolect.data.divide import make
from idiolect.data.downsample import downsample
from idiolect.data.emnist import emnist, read_emnist
from idiolect.data.fashion_mnist import fashion_mnist, read_fashion_mnist
from idiolect.data.federated import SPLITS, FederatedData, Split
from idiolect.data.har import har
from idiolect.data.har_fedmultimodal import har_fedmultimodal
from idiolect.data.har_modalities import har_modalities
from idiolect.data.image_set import ImageSet
from idiolect.data.images import deal, federate
from idiolect.data.missing import Pattern, without
from idiolect.data.mnist import mnist, mnist_partition, read_mnist
from idiolect.data.modalities import Modalities
from idiolect.data.mosei import mosei
from idiolect.data.mosi import mosi
from idiolect.data.mtl import landmine, school
from idiolect.data.omniglot import omniglot, omniglot_partition
from idiolect.data.own_labels import number_own
from idiolect.data.partition import Partition, apply
from idiolect.data.partitioners import PARTITIONERS
from idiolect.data.registry import SOURCES, describe, load
from idiolect.data.synthetic import synthetic
from idiolect.data.table import from_table
from idiolect.data.vehicle import vehicle

__all__ = [
    "PARTITIONERS",
    "SOURCES",
    "SPLITS",
    "Audit",
    "FederatedData",
    "ImageSet",
    "Modalities",
    "Partition",
    "Pattern",
    "Split",
    "apply",
    "audit",
    "cifar10",
    "deal",
    "describe",
    "downsample",
    "emnist",
    "fashion_mnist",
    "federate",
    "from_arrays",
    "from_table",
    "har",
    "har_fedmultimodal",
    "har_modalities",
    "landmine",
    "load",
    "make",
    "mnist",
    "mnist_partition",
    "mosei",
    "mosi",
    "number_own",
    "omniglot",
    "omniglot_partition",
    "read_cifar10",
    "read_emnist",
    "read_fashion_mnist",
    "read_mnist",
    "school",
    "synthetic",
    "vehicle",
    "without",
]
