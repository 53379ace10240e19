"""Federated data from multi-task data: each task is a client."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from idiolect.core.errors import DataError
from idiolect.data.divide.division import divide, large_enough
from idiolect.data.divide.downsample import downsample
from idiolect.data.encode.scaling import check_scaling, provenance_of, standardise
from idiolect.data.federated import FederatedData
from idiolect.data.files.matlab import Task
from idiolect.data.partition import apply_partition

SIGNS = ((-1, 1), (0, 1))


@dataclass(frozen=True)
class Options:
    """The settings of every multi-task data set."""

    normalisation: str
    minimum: int | None
    test: float
    validation: float
    split_seed: int
    downsample: float | None
    downsample_test: float | None


def binary(tasks: Mapping[str, Task], where: str) -> tuple[dict[str, Task], tuple[str, ...]]:
    """The tasks with labels -1/+1 or 0/1 as the classes 0 and 1, and the names of the classes.

    Raises `DataError` on another label, and if all labels are equal.
    """
    values = set(np.concatenate([y for _, y in tasks.values()]).tolist())
    pair = SIGNS[0] if -1 in values else SIGNS[1]
    for name, (_, y) in tasks.items():
        if len(bad := y[~np.isin(y, pair)]):
            raise DataError(f"{where}: {name} has the label {bad[0]:g}; labels are -1 and 1, or 0 and 1")
    if len(values) < 2:
        raise DataError(f"{where}: all labels are {values.pop():g}; classification needs both classes")
    coded = {name: (x, (y == pair[1]).astype(np.float64)) for name, (x, y) in tasks.items()}
    return coded, ("-1", "+1") if pair == SIGNS[0] else ("0", "1")


def from_tasks(
    tasks: Mapping[str, Task],
    options: Options,
    *,
    source: str,
    file: str,
    classes: Sequence[str] = (),
    published: tuple[str, str] = ("as published", "unknown"),
    notes: Sequence[str] = (),
) -> FederatedData:
    """Federated data with a client for each task, whose samples are divided at random.

    file: the name of the file that was read, for the provenance.
    classes: the names of the labels 0 and 1; empty for a regression.
    published: how the publisher normalised the features, and on what that was fitted.
    """
    check_scaling(options.normalisation)
    kept, dropped = large_enough({task: len(y) for task, (_, y) in tasks.items()}, options.minimum, source)
    x = np.concatenate([tasks[task][0] for task in kept])
    y = np.concatenate([tasks[task][1] for task in kept]).astype(np.int32 if classes else np.float32)
    ends = np.cumsum([len(tasks[task][1]) for task in kept])
    partition = divide(
        np.split(np.arange(ends[-1]), ends[:-1]),
        x,
        y,
        name="by-task",
        clients=kept,
        test=options.test,
        validation=options.validation,
        split_seed=options.split_seed,
        notes=dropped,
    )
    partition = downsample(partition, y, options.downsample, test=options.downsample_test, seed=options.split_seed)
    return apply_partition(
        partition,
        x,
        y,
        name=source,
        task="classification" if classes else "regression",
        classes=classes,
        encode=standardise(options.normalisation, x, partition.train.index),
        notes=notes,
        provenance={
            "source": source,
            "arguments": asdict(options),
            "file": file,
            "normalisation": provenance_of(options.normalisation, *published),
        },
    )
