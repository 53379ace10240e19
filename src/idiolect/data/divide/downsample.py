"""Clients with little data beside clients with much: half of the clients keep a part of their samples.

(C. T. Dinh et al., "A New Look and Convergence Rate of Federated Multi-Task Learning with Laplacian
Regularization", section VI.)
"""

import math
from dataclasses import replace

import numpy as np
from jaxtyping import Shaped

from idiolect.core.errors import require
from idiolect.data.divide.division import statistics, stream
from idiolect.data.federated import SPLITS
from idiolect.data.partition import Indices, Partition, Rows


def downsample(
    partition: Partition,
    y: Shaped[np.ndarray, "pool"],
    keep: float | None,
    *,
    test: float | None = None,
    seed: int = 0,
) -> Partition:
    """The partition in which half of the clients (N // 2, drawn at random) keep the fraction `keep` of their data.

    Training and validation samples are cut alike; test samples stay, unless `test` says which fraction of them
    remains (the published code keeps 0.2 of the training and 0.4 of the test samples). Each split that has samples
    keeps one at least. keep=None changes nothing.
    """
    if keep is None:
        require(test is None, "downsample_test needs downsample, the fraction of the training samples that remains")
        return partition
    for name, value in (("downsample", keep), ("downsample_test", test)):
        require(value is None or 0 < value < 1, f"{name} must lie between 0 and 1, it is {value}")
    count = len(partition.clients)
    require(count >= 2, "downsample takes half of the clients, so there must be two at least")
    chosen = np.sort(stream(seed, 2).choice(count, count // 2, replace=False))
    fractions = {"train": keep, "validation": keep, "test": 1.0 if test is None else test}
    rows: dict[str, Rows] = {}
    for number, split in enumerate(SPLITS):
        groups = [partition.rows(split).client(client) for client in range(count)]
        for client in chosen:
            groups[client] = _part(groups[client], fractions[split], stream(seed, 3, int(client), number))
        rows[split] = Rows.of(groups)
    names = ", ".join(partition.clients[client] for client in chosen)
    tests = "their test samples are all kept" if test is None else f"and {test:g} of their test samples"
    note = (
        f"down-sampled: {len(chosen)} of {count} clients keep {keep:g} of their training and validation samples, "
        f"{tests}: {names}"
    )
    return replace(
        partition,
        **rows,
        parameters={**partition.parameters, "downsample": keep, "downsample_test": test, "downsample_seed": seed},
        statistics=statistics(rows, y),
        notes=(*partition.notes, note),
    )


def _part(group: Indices, fraction: float, random: np.random.Generator) -> Indices:
    """A random part of the samples; what is dropped is rounded down, as in the published code."""
    kept = len(group) - math.floor(len(group) * (1 - fraction) + 1e-9)
    return np.sort(random.permutation(group)[:kept])
