"""Federated data from an image set: any partition, normalisation and labelling of a pool of images."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float, Int32, UInt8

from idiolect.core.errors import require, unknown
from idiolect.core.settings import settings_of, validated
from idiolect.data.divide.division import divide, make_partition
from idiolect.data.divide.division import downsample as downsampled
from idiolect.data.divide.partitioners import PARTITIONERS
from idiolect.data.encode.labels import number_own_labels
from idiolect.data.encode.normalisation import IMAGES_FITTED_ON, normalise
from idiolect.data.federated import SPLITS, FederatedData
from idiolect.data.partition import Indices, Partition, apply_partition
from idiolect.data.sets.image_set import ImagePartitioner, ImageSet
from idiolect.data.sets.published import NAME, PFLEGO

SHAPES = ("flat", "image")
LABELS = ("global", "client")


def partition_images(
    pool: ImageSet,
    partition: str,
    *,
    clients: int | None = None,
    downsample: float | None = None,
    downsample_test: float | None = None,
    **arguments: Any,
) -> Partition:
    """Partition an image set among clients, by the name of a partition or the path of a saved one (.npz).

    The names: the set's own partitions, those of PFLEGO (pflego-high, pflego-medium, pflego-none), partitioners.

    Args:
        arguments: The partition's settings, see `PartitionOptions`.

    Raises:
        ConfigError: On an unknown name or setting.
    """
    arguments |= {} if clients is None else {"clients": clients}
    reductions = {"downsample": downsample, "downsample_test": downsample_test}
    if partition.endswith(".npz"):
        given = [*arguments, *(key for key, value in reductions.items() if value is not None)]
        require(not given, f"the saved partition {partition} fixes everything: leave out {', '.join(given)}")
        return Partition.load(partition)
    named_partitions = {**(PFLEGO if pool.common else {}), **pool.partitions}
    if pool.common and partition in PARTITIONERS:
        divided = make_partition(pool.images, pool.labels, partition, **arguments)
    elif partition in named_partitions:
        settings = settings_of(named_partitions[partition], hidden=("pool", "level"))
        divided = named_partitions[partition](pool, **validated(settings, arguments, f"partition '{partition}'"))
    else:
        raise unknown("partition", partition, [*named_partitions, *(PARTITIONERS if pool.common else ())])
    seed = arguments.get("split_seed", 0)
    return _with_overlap(downsampled(divided, pool.labels, downsample, test=downsample_test, seed=seed))


def from_images(
    pool: ImageSet,
    partition: str,
    *,
    normalisation: str = "pixel-zscore-train",
    shape: str = "flat",
    labels: str | None = None,
    keyword: str = "partition",
    **options: Any,
) -> FederatedData:
    """Divide an image set among clients.

    Args:
        normalisation: See `normalise`.
        shape: Features 'flat', (pixels,), or 'image', (height, width, channels).
        labels: 'global', or 'client', see `number_own_labels`; by default as the partition is published: 'client' for
            PFLEGO's, where each client has a problem of K_i classes, else 'global'.
        keyword: The name of the set's argument for its partition.
        options: See `PartitionOptions`.
    """
    for name, value, known in (("shape", shape, SHAPES), ("labels", labels or "global", LABELS)):
        if value not in known:
            raise unknown(name, value, known)
    divided = partition_images(pool, partition, **options)

    @cache  # first called after `apply_partition` has checked that the partition is of this pool
    def encoder() -> Callable[[UInt8[np.ndarray, "n pixels"]], Float[np.ndarray, "n pixels"]]:
        return normalise(normalisation, pool.images, divided.train.index, channels=pool.shape[2])

    def features(rows: UInt8[np.ndarray, "n pixels"]) -> Float[np.ndarray, "n ..."]:
        encoded = encoder()(rows)
        return encoded if shape == "flat" else encoded.reshape(len(rows), *pool.shape)

    data = apply_partition(
        divided,
        pool.images,
        pool.labels,
        name=f"{pool.name}/{divided.name}",
        task="classification",
        classes=pool.classes,
        encode=features,
        notes=pool.notes,
        provenance={
            "source": pool.name,
            "arguments": {
                **pool.arguments,
                keyword: partition,
                "normalisation": normalisation,
                "shape": shape,
                "labels": labels,
                **options,
            },
            "normalisation": {"name": normalisation, "fitted_on": IMAGES_FITTED_ON.get(normalisation)},
            "leaks": [pool.leaks[divided.name]] if divided.name in pool.leaks else [],
        },
    )
    own_labels = labels == "client" or (labels is None and divided.name.startswith(NAME))
    return number_own_labels(data) if own_labels else data


def fixed(
    name: str,
    groups: Callable[[Int32[np.ndarray, "n"]], list[Indices]],
    clients: int,
    seed: int,
    notes: Callable[[list[Indices]], list[str]] = lambda _: [],
) -> ImagePartitioner:
    """A paper's partition with fixed seed and number of clients; each client's images are divided at random."""
    count, published_seed = clients, seed

    def make(
        pool: ImageSet,
        *,
        clients: int = count,
        seed: int = 0,  # noqa: ARG001  every partition can be asked with a seed
        test: float = 0.25,
        validation: float = 0.1,
        split_seed: int = 0,
    ) -> Partition:
        require(clients == count, f"partition '{name}' has {count} clients, not {clients}")
        client_groups = groups(pool.labels)
        return divide(
            client_groups,
            pool.images,
            pool.labels,
            name=name,
            seed=published_seed,
            test=test,
            validation=validation,
            split_seed=split_seed,
            notes=notes(client_groups),
        )

    return make


def _with_overlap(partition: Partition) -> Partition:
    """If clients share images, add a note that says how many, and how many test images leak."""
    slots = sum(len(partition.rows(split).index) for split in SPLITS)
    if slots == partition.statistics["distinct"]:
        return partition
    trained = np.zeros(partition.statistics["distinct"] + partition.statistics["unused"], dtype=bool)
    trained[partition.train.index] = True
    # A client's own training and test samples are disjoint, so every training copy is another client's.
    leaked = float(trained[partition.test.index].mean())
    note = (
        f"clients share images by design, as in the published code: {slots:,} samples are "
        f"{partition.statistics['distinct']:,} distinct images, and {leaked:.1%} of the test samples are "
        "training samples of another client"
    )
    return replace(partition, notes=(*partition.notes, note))
