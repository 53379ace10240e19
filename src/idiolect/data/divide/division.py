"""Divide each client's samples into train, validation and test; down-sample clients.

Down-sampling is that of C. T. Dinh et al., "A New Look and Convergence Rate of Federated Multi-Task Learning with
Laplacian Regularization", section VI.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from jaxtyping import Bool, Shaped

from idiolect.core.errors import DataError, require, shortened, unknown
from idiolect.core.settings import settings_of, validated
from idiolect.data.divide.partitioners import PARTITIONERS
from idiolect.data.federated import SPLITS
from idiolect.data.partition import Indices, Partition, Rows, pool_hash


def stream(seed: int, *purpose: int) -> np.random.Generator:
    """The random stream of one purpose (0: the assignment to clients; 1, client: that client's division)."""
    whole = isinstance(seed, Integral) and not isinstance(seed, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    require(whole, f"seed must be a whole number, it is {shortened(seed)}")
    require(seed >= 0, f"seed must not be negative, it is {seed}")
    return np.random.Generator(np.random.PCG64([seed, *purpose]))


def counts(size: int, test: float, validation: float) -> tuple[int, int, int]:
    """The numbers of (train, validation, test) samples of a client with `size` samples.

    Train and validation together are the fraction 1 - test rounded down, as in the papers' code. Validation is
    rounded to the nearest, and leaves at least one training sample.
    """
    not_test = math.floor(size * (1 - test) + 1e-9)
    num_test = size - not_test
    num_validation = min(round(size * validation), max(not_test - 1, 0))
    return not_test - num_validation, num_validation, num_test


def is_enough(size: int, test: float, validation: float = 0.0) -> bool:
    """Whether a client of this size gets a training sample and, unless test = 0, a test sample."""
    train, _, tested = counts(size, test, validation)
    return train >= 1 and (tested >= 1 or test == 0)


def smallest(test: float) -> int:
    """The smallest size at which a client gets a training and a test sample."""
    return next(size for size in itertools.count(1) if is_enough(size, test))


def shuffled(
    group: Indices, client: int, seed: int, test: float, validation: float
) -> tuple[Indices, Indices, Indices]:
    """One client's samples divided at random; the test samples do not depend on the validation fraction."""
    order = group[stream(seed, 1, client).permutation(len(group))]
    _, num_validation, num_test = counts(len(group), test, validation)
    return (
        np.sort(order[num_test + num_validation :]),
        np.sort(order[num_test : num_test + num_validation]),
        np.sort(order[:num_test]),
    )


def check_fractions(test: float, validation: float, *, untested: bool = False) -> None:
    """Raise `ConfigError` unless the fractions are in range and leave something for training.

    untested: test = 0, no test samples, is allowed.
    """
    for name, fraction in (("test", test), ("validation", validation)):
        number = isinstance(fraction, Real) and not isinstance(fraction, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        require(number, f"{name} fraction must be a number, it is {shortened(fraction)}")
    require(0 < test < 1 or (untested and test == 0), f"test fraction must lie between 0 and 1, it is {test}")
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
    """The partition in which client i holds the samples `groups[i]`, divided at random inside each client.

    test = 0 leaves all clients without test samples. Raises `DataError` if a client is too small for a training and
    a test sample.
    """
    check_fractions(test, validation, untested=True)
    digits = len(str(len(groups) - 1))
    names = [f"client {i:0{digits}d}" for i in range(len(groups))] if clients is None else clients
    for client, group in zip(names, groups, strict=True):
        if not is_enough(len(group), test, validation):
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
    """The clients with at least `minimum` samples, and a note about the dropped ones.

    Raises `DataError` if all are too small.
    """
    if minimum is None:
        return list(sizes), []
    whole = isinstance(minimum, Integral) and not isinstance(minimum, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    require(whole and minimum >= 1, f"minimum = {shortened(minimum)} must be a whole number of at least 1 sample")
    kept = [client for client, size in sizes.items() if size >= minimum]
    dropped = [client for client, size in sizes.items() if size < minimum]
    if not kept:
        raise DataError(f"{where}: every client has fewer than minimum={minimum} samples; lower it")
    if not dropped:
        return kept, []
    count = f"{len(dropped)} of {len(sizes)} clients"
    return kept, [f"{count} have fewer than minimum={minimum} samples and are dropped: {listed(dropped)}"]


def listed(names: Sequence[str], most: int = 40) -> str:
    """The names for a note; of more than `most`, the first and the number of the others."""
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
    """The partition of the given groups: for each split, each client's indices."""
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
    """Samples of each client by split, distinct and unused samples; for class labels, a table client x label."""
    used = np.zeros(len(y), dtype=bool)
    for part in rows.values():
        used[part.index] = True
    result: dict[str, Any] = {
        "sizes": {split: part.sizes.tolist() for split, part in rows.items()},
        "distinct": int(used.sum()),
        "unused": int(len(y) - used.sum()),
    }
    if np.issubdtype(y.dtype, np.integer):
        values, codes = np.unique(y, return_inverse=True)
        table = np.zeros((len(rows[SPLITS[0]].sizes), len(values)), dtype=np.int64)
        for part in rows.values():
            np.add.at(table, (np.repeat(np.arange(len(table)), part.sizes), codes[part.index]), 1)
        result["label_values"] = values.tolist()
        result["labels"] = table.tolist()
    return result


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
    """Partition a pool of samples among clients by a named partitioner of `PARTITIONERS`.

    Args:
        seed: Assigns samples to clients.
        split_seed: Divides each client's samples, of which `test` and `validation` are fractions.
        parameters: The partitioner's own.

    Raises:
        ConfigError: On an unknown name or parameter.
    """
    if partitioner not in PARTITIONERS:
        raise unknown("partition", partitioner, PARTITIONERS)
    function = PARTITIONERS[partitioner]
    settings = settings_of(function, hidden=("labels", "clients", "rng"))
    parameters = validated(settings, parameters, f"partition '{partitioner}'")
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


def by_time(
    series: Sequence[Indices], overlaps: Bool[np.ndarray, "pool"], test: float, validation: float
) -> tuple[Indices, Indices, Indices]:
    """(train, validation, test) windows of one client: of each series the first train, the last test.

    series: windows in the order of time (one series an activity). overlaps: whether a window of the pool overlaps
    the one before it. At each cut, the window that overlaps a later split's window is left out.
    """
    divided: list[list[Indices]] = [[], [], []]
    for rows in series:
        size, num_validation, _ = counts(len(rows), test, validation)
        for part, block in zip(divided, np.split(rows, [size, size + num_validation]), strict=True):
            part.append(block)
    train, validation_windows, test_windows = (np.sort(np.concatenate(part)) for part in divided)
    validation_windows = validation_windows[~overlapping(validation_windows, test_windows, overlaps)]
    train = train[~overlapping(train, np.concatenate([validation_windows, test_windows]), overlaps)]
    return train, validation_windows, test_windows


def overlapping(rows: Indices, others: Indices, overlaps: Bool[np.ndarray, "pool"]) -> Bool[np.ndarray, "_"]:
    """Which of the windows `rows` overlap a window among `others`."""
    marked = np.zeros(len(overlaps) + 1, dtype=bool)
    marked[others] = True
    following = np.append(overlaps, False)
    return (overlaps[rows] & marked[rows - 1]) | (following[rows + 1] & marked[rows + 1])


def downsample(
    partition: Partition,
    y: Shaped[np.ndarray, "pool"],
    keep: float | None,
    *,
    test: float | None = None,
    seed: int = 0,
) -> Partition:
    """Return a partition in which N // 2 random clients keep only a fraction of their samples.

    Each split that has samples keeps at least one.

    Args:
        keep: The fraction of the training and validation samples that they keep; None changes nothing.
        test: The fraction of their test samples that they keep, all by default (the published code keeps 0.2 of the
            training and 0.4 of the test samples).

    Raises:
        ConfigError: If a fraction is not between 0 and 1 or there is only one client.
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
