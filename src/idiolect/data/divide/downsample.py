"""Down-sampling: half of the clients keep only a fraction of their samples.

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
    """The partition in which N // 2 random clients keep the fraction `keep` of their training and validation samples.

    test: the fraction of their test samples that they keep, all by default (the published code keeps 0.2 of the
    training and 0.4 of the test samples). Each split that has samples keeps at least one. keep=None changes nothing.
    Raises `ConfigError` if a fraction is not between 0 and 1 or there is only one client.
    """
    if keep is None:
        require(test is None, "downsample_test needs downsample, the fraction of the training samples that remains")
        return partition
    for name, value in (("downsample", keep), ("downsample_test", test)):
        require(value is None or 0 < value < 1, f"{name} must lie between 0 and 1, it is {value}")
    count = len(partition.clients)
    require(count >= 2, "downsample takes half of the clients, so there must be two at least")
    reduced = np.sort(stream(seed, 2).choice(count, count // 2, replace=False))
    fractions = {"train": keep, "validation": keep, "test": 1.0 if test is None else test}
    rows: dict[str, Rows] = {}
    for number, split in enumerate(SPLITS):
        groups = [partition.rows(split).client(client) for client in range(count)]
        for client in reduced:
            groups[client] = _part(groups[client], fractions[split], stream(seed, 3, int(client), number))
        rows[split] = Rows.of(groups)
    reduced_names = ", ".join(partition.clients[client] for client in reduced)
    tests = "their test samples are all kept" if test is None else f"and {test:g} of their test samples"
    note = (
        f"down-sampled: {len(reduced)} of {count} clients keep {keep:g} of their training and validation samples, "
        f"{tests}: {reduced_names}"
    )
    return replace(
        partition,
        **rows,
        parameters={**partition.parameters, "downsample": keep, "downsample_test": test, "downsample_seed": seed},
        statistics=statistics(rows, y),
        notes=(*partition.notes, note),
    )


def _part(group: Indices, fraction: float, random: np.random.Generator) -> Indices:
    """A random fraction of the samples; the number of dropped ones is rounded down, as in the published code."""
    num_kept = len(group) - math.floor(len(group) * (1 - fraction) + 1e-9)
    return np.sort(random.permutation(group)[:num_kept])
