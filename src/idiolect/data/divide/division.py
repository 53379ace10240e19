"""Divide each client's samples into train, validation and test."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Shaped

from idiolect.core.errors import ConfigError, DataError, require, unknown
from idiolect.core.settings import check_keywords
from idiolect.data.divide.partitioners import PARTITIONERS
from idiolect.data.federated import SPLITS
from idiolect.data.partition import Indices, Partition, Rows, pool_hash


def stream(seed: int, *purpose: int) -> np.random.Generator:
    """The random stream of one purpose (0: who owns a sample; 1, client: that client's division)."""
    if seed < 0:
        raise ConfigError(f"seed must not be negative, it is {seed}")
    return np.random.Generator(np.random.PCG64([seed, *purpose]))


def counts(size: int, test: float, validation: float) -> tuple[int, int, int]:
    """Samples for (train, validation, test) of a client with `size` samples.

    Train and validation together are the fraction 1 - test rounded down, as in the papers' code; the validation
    part is rounded, and gives way to training when a client is small.
    """
    kept = math.floor(size * (1 - test) + 1e-9)
    tested = size - kept
    held = min(round(size * validation), max(kept - 1, 0))
    return kept - held, held, tested


def smallest(test: float) -> int:
    """The smallest client that gets a training and a test sample."""
    return next(size for size in itertools.count(2) if min(counts(size, test, 0.0)[::2]) >= 1)


def shuffled(
    group: Indices, client: int, seed: int, test: float, validation: float
) -> tuple[Indices, Indices, Indices]:
    """One client's samples divided at random; the test samples do not depend on the validation fraction."""
    order = group[stream(seed, 1, client).permutation(len(group))]
    _, held, tested = counts(len(group), test, validation)
    return np.sort(order[tested + held :]), np.sort(order[tested : tested + held]), np.sort(order[:tested])


def check_fractions(test: float, validation: float) -> None:
    """The fractions must leave something for training."""
    require(0 < test < 1, f"test fraction must lie between 0 and 1, it is {test}")
    require(
        0 <= validation < 1 - test,
        f"validation fraction must be at least 0 and below 1 - test = {1 - test:g}, it is {validation}",
    )


def divide(
    groups: Sequence[Indices],
    x: Shaped[np.ndarray, "pool ..."],
    y: Shaped[np.ndarray, "pool"],
    *,
    name: str,
    seed: int = 0,
    clients: Sequence[str] | None = None,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Partition:
    """The partition in which client i owns the samples `groups[i]`, divided at random inside each client."""
    check_fractions(test, validation)
    digits = len(str(len(groups) - 1))
    names = [f"client {i:0{digits}d}" for i in range(len(groups))] if clients is None else clients
    for client, group in zip(names, groups, strict=True):
        if min(counts(len(group), test, validation)[::2]) < 1:
            raise DataError(
                f"client '{client}' has {len(group)} sample{'s' * (len(group) != 1)}, too few for a training and a "
                f"test sample (test={test}); minimum={smallest(test)} keeps clients this small out"
            )
    divided = [shuffled(group, i, split_seed, test, validation) for i, group in enumerate(groups)]
    return of_splits(
        dict(zip(SPLITS, zip(*divided, strict=True), strict=True)),
        x,
        y,
        name=name,
        seed=seed,
        clients=names,
        parameters={
            **(parameters or {}),
            "clients": len(groups),
            "test": test,
            "validation": validation,
            "split_seed": split_seed,
        },
        notes=notes,
    )


def large_enough(sizes: Mapping[str, int], minimum: int | None, where: str) -> tuple[list[str], list[str]]:
    """The clients with at least `minimum` samples, and a note about those that are dropped."""
    if minimum is None:
        return list(sizes), []
    kept = [client for client, size in sizes.items() if size >= minimum]
    dropped = [client for client, size in sizes.items() if size < minimum]
    if not kept:
        raise DataError(f"{where}: every client has fewer than minimum={minimum} samples; lower it")
    if not dropped:
        return kept, []
    count = f"{len(dropped)} of {len(sizes)} clients"
    return kept, [f"{count} have fewer than minimum={minimum} samples and are dropped: {listed(dropped)}"]


def listed(names: Sequence[str], most: int = 40) -> str:
    """The names for a note, cut where they are many."""
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most} more"


def of_splits(
    groups: Mapping[str, Sequence[Indices]],
    x: Shaped[np.ndarray, "pool ..."],
    y: Shaped[np.ndarray, "pool"],
    *,
    name: str,
    clients: Sequence[str],
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Partition:
    """The partition whose splits are given client by client."""
    rows = {split: Rows.of(groups[split]) for split in SPLITS}
    return Partition(
        name=name,
        seed=seed,
        clients=tuple(clients),
        pool=pool_hash(x, y),
        parameters=dict(parameters or {}),
        statistics=statistics(rows, y),
        notes=tuple(notes),
        **rows,
    )


def statistics(rows: Mapping[str, Rows], y: Shaped[np.ndarray, "pool"]) -> dict[str, Any]:
    """Samples of each client by split, distinct and unused samples; for classes a table, client x label value."""
    used = np.zeros(len(y), dtype=bool)
    for part in rows.values():
        used[part.index] = True
    found: dict[str, Any] = {
        "sizes": {split: part.sizes.tolist() for split, part in rows.items()},
        "distinct": int(used.sum()),
        "unused": int(len(y) - used.sum()),
    }
    if np.issubdtype(y.dtype, np.integer):
        values, codes = np.unique(y, return_inverse=True)
        table = np.zeros((len(rows[SPLITS[0]].sizes), len(values)), dtype=np.int64)
        for part in rows.values():
            np.add.at(table, (np.repeat(np.arange(len(table)), part.sizes), codes[part.index]), 1)
        found["label_values"] = values.tolist()
        found["labels"] = table.tolist()
    return found


def make_partition(
    x: Shaped[np.ndarray, "pool ..."],
    y: Shaped[np.ndarray, "pool"],
    partitioner: str,
    *,
    clients: int = 20,
    seed: int = 0,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
    **parameters: Any,
) -> Partition:
    """Deal a pool to clients by the partitioner of that name; `parameters` are the partitioner's own."""
    if partitioner not in PARTITIONERS:
        raise unknown("partition", partitioner, PARTITIONERS)
    function = PARTITIONERS[partitioner]
    check_keywords(function, parameters, f"partition '{partitioner}'", hidden=("labels", "clients", "rng"))
    groups = function(y, clients, stream(seed, 0), **parameters)
    return divide(
        groups,
        x,
        y,
        name=partitioner,
        seed=seed,
        test=test,
        validation=validation,
        split_seed=split_seed,
        parameters=parameters,
    )
