"""Labels as people have them (names, integers, numbers) to classes or regression targets."""

from collections.abc import Sequence
from typing import Any, cast, get_args

import numpy as np
from jaxtyping import Shaped

from idiolect.core.errors import DataError, unknown
from idiolect.data.federated import TaskKind

FEW = 20
MANY = 100


def guess_task(labels: Shaped[np.ndarray, "n"], *, whole_floats: bool = False) -> TaskKind:
    """Regression for floats, classification for everything else.

    whole_floats: also take floats with at most 20 distinct, whole values as classes, and integers with more than
    100 distinct values as numbers: what a table's column means, where a file does not tell 1 from 1.0.
    """
    if np.issubdtype(labels.dtype, np.floating):
        distinct = np.unique(labels)
        few = whole_floats and len(distinct) <= FEW and bool((distinct == np.round(distinct)).all())
        return "classification" if few else "regression"
    if np.issubdtype(labels.dtype, np.integer) and whole_floats and len(np.unique(labels)) > MANY:
        return "regression"
    return "classification"


def check_task(task: str) -> TaskKind:
    """The task of that name."""
    if task not in get_args(TaskKind):
        raise unknown("task", task, get_args(TaskKind))
    return cast(TaskKind, task)


def encode_labels(
    labels: Shaped[np.ndarray, "n"],
    task: TaskKind,
    where: str,
    classes: Sequence[str] = (),
) -> tuple[Shaped[np.ndarray, "n"], tuple[str, ...]]:
    """The labels as int32 classes with their names, or as float32 targets with none.

    classes: the names of integer labels 0, 1, ...; without them the classes are the sorted distinct labels.
    """
    numeric = np.issubdtype(labels.dtype, np.number) or labels.dtype == np.bool_
    if task == "regression":
        if not numeric:
            raise DataError(f"{where}: regression needs numbers as labels, they are {labels.dtype}")
        return labels.astype(np.float32), ()
    if np.issubdtype(labels.dtype, np.floating):
        if not bool((labels == np.round(labels)).all()):
            raise DataError(f"{where}: labels with fractions cannot be classes; use task='regression'")
        labels = labels.astype(np.int64)
    if classes:
        if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0 or labels.max() >= len(classes):
            raise DataError(f"{where}: with classes given, labels must be integers 0..{len(classes) - 1}")
        return labels.astype(np.int32), tuple(classes)
    distinct, codes = np.unique(labels, return_inverse=True)
    if len(distinct) < 2:
        raise DataError(f"{where}: all labels are '{distinct[0]}'; classification needs at least two classes")
    return codes.reshape(-1).astype(np.int32), tuple(str(value) for value in distinct.tolist())


def as_labels(values: Any, where: str) -> Shaped[np.ndarray, "n"]:
    """A one-dimensional label array; names become strings."""
    labels = np.asarray(values)
    if labels.ndim != 1:
        raise DataError(f"{where}: labels must have one dimension, their shape is {labels.shape}")
    return labels.astype(str) if labels.dtype.kind == "O" else labels
