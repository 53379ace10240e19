"""Federated data: where they come from, how they are divided, and what leaks between their parts."""

from idiolect.data.arrays import from_arrays
from idiolect.data.audit import Audit, audit
from idiolect.data.divide import make
from idiolect.data.federated import SPLITS, FederatedData, Split
from idiolect.data.mnist import mnist, mnist_partition
from idiolect.data.partition import Partition, apply
from idiolect.data.partitioners import PARTITIONERS
from idiolect.data.registry import SOURCES, describe, load
from idiolect.data.synthetic import synthetic
from idiolect.data.table import from_table

__all__ = [
    "PARTITIONERS",
    "SOURCES",
    "SPLITS",
    "Audit",
    "FederatedData",
    "Partition",
    "Split",
    "apply",
    "audit",
    "describe",
    "from_arrays",
    "from_table",
    "load",
    "make",
    "mnist",
    "mnist_partition",
    "synthetic",
]
