"""Encode labels (names, integers, numbers) as classes or regression targets, for all clients or for each client."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast, get_args

import numpy as np
import pandas as pd
from jaxtyping import Shaped

from idiolect.core.errors import ConfigError, DataError, kind_of, unknown
from idiolect.data.federated import SPLITS, FederatedData, Split, TaskKind
from idiolect.data.schema.columns import LARGEST
from idiolect.data.schema.label import EXACT

FEW = 20
MANY = 100
LOPSIDED = 0.95
"""Share of one class from which on accuracy says little."""


def guess_task(labels: Shaped[np.ndarray, "n"], *, whole_floats: bool = False) -> TaskKind:
    """Regression for floats, classification for everything else.

    whole_floats: for tables, since their files do not distinguish 1 from 1.0: floats with at most 20 distinct, whole
    values are classes, and integers with more than 100 distinct values are targets of a regression.
    """
    if np.issubdtype(labels.dtype, np.floating):
        distinct = np.unique(labels)
        few = whole_floats and len(distinct) <= FEW and bool((distinct == np.round(distinct)).all())
        few = few and bool((np.abs(distinct) < EXACT).all())
        return "classification" if few else "regression"
    if np.issubdtype(labels.dtype, np.integer) and whole_floats and len(np.unique(labels)) > MANY:
        return "regression"
    return "classification"


def many_classes(name: str, distinct: int) -> list[str]:
    """A note, if whole numbers with many distinct values were taken for classes only by `guess_task`."""
    if distinct <= FEW:
        return []
    return [
        f"label '{name}' has {distinct} different whole numbers, read as classes; if it is an amount, say "
        "task='regression' (in commands --set data.task=regression)"
    ]


def check_task(task: str) -> TaskKind:
    """Return the task; raises `ConfigError` on an unknown name."""
    if task not in get_args(TaskKind):
        raise unknown("task", task, get_args(TaskKind))
    return cast(TaskKind, task)


def encode_labels(
    labels: Shaped[np.ndarray, "n"],
    task: TaskKind,
    where: str,
    classes: Sequence[str] = (),
) -> tuple[Shaped[np.ndarray, "n"], tuple[str, ...]]:
    """(int32 classes, their names) for a classification, (float32 targets, ()) for a regression.

    classes: the names of integer labels 0, 1, ...; by default the classes are the sorted distinct labels. Raises
    `DataError` on labels that do not fit the task.
    """
    numeric = np.issubdtype(labels.dtype, np.number) or labels.dtype == np.bool_
    if task == "regression":
        if not numeric:
            raise DataError(f"{where}: regression needs numbers as labels, they are {labels.dtype}")
        return labels.astype(np.float32), ()
    if np.issubdtype(labels.dtype, np.floating):
        if not bool((labels == np.round(labels)).all()):
            raise DataError(f"{where}: labels with fractions cannot be classes; use task='regression'")
        if not bool((np.abs(labels) < EXACT).all()):
            raise DataError(
                f"{where}: labels of {EXACT:.0f} or more are not exact as numbers with a point; write them as text, "
                "or use task='regression'"
            )
        labels = labels.astype(np.int64)
    if isinstance(classes, str) or not isinstance(classes, Sequence | np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{where}: classes must be a list of names, not {kind_of(classes)}")
    if len({*map(str, classes)}) < len(classes):
        raise ConfigError(f"{where}: classes has the same name more than once; give each class its own")
    if len(classes):
        if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0 or labels.max() >= len(classes):
            raise DataError(f"{where}: with classes given, labels must be integers 0..{len(classes) - 1}")
        return labels.astype(np.int32), tuple(map(str, classes))
    distinct, codes = np.unique(labels, return_inverse=True)
    if len(distinct) < 2:
        raise DataError(f"{where}: all labels are '{distinct[0]}'; classification needs at least two classes")
    return codes.reshape(-1).astype(np.int32), tuple(str(value) for value in distinct.tolist())


def as_labels(values: Any, where: str) -> Shaped[np.ndarray, "n"]:
    """The labels as a one-dimensional array, names as strings; raises `DataError` on another shape."""
    try:
        labels = np.asarray(values)
    except (ValueError, TypeError) as error:  # lists of several lengths
        raise DataError(f"{where}: labels must be one value per sample") from error
    if labels.ndim != 1:
        raise DataError(f"{where}: labels must have one dimension, their shape is {labels.shape}")
    if labels.dtype.kind == "O":
        missing = np.flatnonzero([value is None or value is pd.NA or value != value for value in labels])
        if len(missing):
            raise DataError(f"{where}: label {missing[0]} is missing ({len(missing)} in all); leave its sample out")
        return labels.astype(str)
    if labels.dtype.kind not in "biufU":
        raise DataError(f"{where}: a label is a class or a number, these are {labels.dtype}")
    check_numbers(labels, "labels", where)
    return labels


def check_numbers(values: Shaped[np.ndarray, "..."], name: str, where: str) -> None:
    """Raise `DataError` naming the first entry that is NaN, infinite or beyond `LARGEST`."""
    if values.dtype.kind != "f":
        return
    wide = values.astype(np.result_type(values.dtype, np.float32), copy=False)  # 16 bits do not hold `LARGEST`
    wrong = np.argwhere(~(np.abs(wide) <= LARGEST))
    if len(wrong):
        place = ", ".join(map(str, wrong[0].tolist()))
        raise DataError(
            f"{where}: {name}[{place}] is {wide[tuple(wrong[0])]:g} ({len(wrong)} such in all); numbers must be "
            f"finite and of at most {LARGEST:g}: replace it or leave the sample out"
        )


def lopsided(y: Shaped[np.ndarray, "n"], classes: Sequence[str]) -> tuple[str, float] | None:
    """(the most frequent class, its share) if nearly all labels are of it, else None."""
    count = np.bincount(y, minlength=len(classes))
    share = float(count.max()) / len(y)
    return (classes[int(count.argmax())], share) if share >= LOPSIDED else None


def number_own_labels(data: FederatedData) -> FederatedData:
    """Return the same samples, where client i numbers its K_i classes 0..K_i - 1, in the order of `data.classes`.

    A client's classes are those of its training, validation and test samples together.

    Raises:
        DataError: For a regression and for data that are numbered so already.
    """
    if data.task != "classification" or data.own_labels:
        raise DataError(f"{data.name}: only classes that all clients number alike can be numbered by each client")
    held = np.zeros((data.num_clients, len(data.classes)), dtype=bool)
    for name in SPLITS:
        split = data.split(name)
        held[split.owners, split.y] = True
    number = np.cumsum(held, axis=1) - 1
    outputs = held.sum(axis=1)
    least, most = int(outputs.min()), int(outputs.max())
    notes = data.notes if held.all() else (*data.notes, _note(least, most))

    def numbered(split: Split) -> Split:
        return Split(split.x, number[split.owners, split.y].astype(np.int32), split.offsets, outputs)

    return replace(
        data,
        classes=tuple(str(k) for k in range(most)),
        notes=notes,
        own_classes=tuple(tuple(np.array(data.classes)[own].tolist()) for own in held),
        **{name: numbered(data.stored(name)) for name in SPLITS},
    )


def _note(least: int, most: int) -> str:
    count = f"{most}" if least == most else f"{least} to {most}"
    return f"each client numbers its {count} classes from 0: label k means another class at another client"
