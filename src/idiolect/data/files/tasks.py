"""Read multi-task data: MATLAB files with one cell per task, and JSON of the LEAF benchmark with one user per task.

(S. Caldas et al., "LEAF: A Benchmark for Federated Settings", arXiv:1812.01097.)
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float32, Float64

from idiolect.core.errors import DataError
from idiolect.core.files import json_of
from idiolect.data.files.archive import AGAIN, read_gz

KEYS = (("X", "Y"), ("feature", "label"))

Task = tuple[Float32[np.ndarray, "n features"], Float64[np.ndarray, "n"]]


def read_tasks(path: Path, keys: Sequence[tuple[str, str]] = KEYS) -> list[Task]:
    """The (features, labels) of every task, in the file's order; keys: possible names of the two variables."""
    from scipy.io import loadmat  # here: it loads slowly, and most commands never need it

    try:
        variables: Mapping[str, Any] = loadmat(str(path))
    except Exception as error:  # damaged bytes make scipy raise almost anything, NotImplementedError for HDF5 files
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{path} cannot be read as a MATLAB file (version 4 to 7.2): {reason}; {AGAIN}") from error
    pair = next((pair for pair in keys if all(key in variables for key in pair)), None)
    if pair is None:
        wanted = " or ".join(f"'{x}' and '{y}'" for x, y in keys)
        present = ", ".join(name for name in variables if not name.startswith("__")) or "nothing"
        raise DataError(f"{path} has no variables {wanted}; it has {present}")
    features, labels = (_cells(path, name, variables[name]) for name in pair)
    if len(features) != len(labels):
        raise DataError(f"{path}: '{pair[0]}' has {len(features)} cells, '{pair[1]}' has {len(labels)}")
    if not features:
        raise DataError(f"{path}: '{pair[0]}' has no cells, so there are no tasks")
    tasks = [
        task_of(x, y, f"{path}, task {number}") for number, (x, y) in enumerate(zip(features, labels, strict=True), 1)
    ]
    check_widths({f"task {number}": task for number, task in enumerate(tasks, 1)}, str(path))
    return tasks


def task_of(features: Any, labels: Any, where: str) -> Task:
    """Check one task's samples: finite numbers, a row and a label each; y may be (n,), (n, 1) or (1, n)."""
    try:
        x, y = np.asarray(features), np.asarray(labels)
    except ValueError as error:  # rows of unequal length
        raise DataError(f"{where}: rows of unequal length ({error})") from error
    for what, values in (("features", x), ("labels", y)):
        if values.dtype.kind not in "fiub":
            raise DataError(f"{where}: {what} must be numbers, they are {values.dtype}")
        if not np.isfinite(values).all():
            raise DataError(f"{where}: {what} hold NaN or infinity; clean or impute the data first")
    if x.ndim != 2 or len(x) == 0:
        raise DataError(f"{where}: features must be a table, samples x features; their shape is {x.shape}")
    if y.size != len(x) or y.size != max(y.shape, default=1):
        raise DataError(f"{where}: {len(x)} feature rows but labels of shape {y.shape}")
    return x.astype(np.float32), y.reshape(-1).astype(np.float64)


def check_widths(tasks: Mapping[str, Task], where: str) -> None:
    """Raise `DataError` unless all tasks have the same number of features."""
    first = next(iter(tasks))
    for name, (x, _) in tasks.items():
        if x.shape[1] != (expected := tasks[first][0].shape[1]):
            raise DataError(f"{where}: {name} has {x.shape[1]} features, {first} has {expected}")


def _cells(path: Path, name: str, value: Any) -> list[Any]:
    if not isinstance(value, np.ndarray) or value.dtype != object:
        raise DataError(f"{path}: '{name}' must be a cell array with one cell per task")
    return list(value.ravel())


def read_leaf(path: Path) -> dict[str, Task]:
    """Each user's (features, labels), in the file's order; the file may be compressed by gzip."""
    content = read_gz(path)
    try:
        document = json_of(content)
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}); {AGAIN}") from error
    users, data = _entry(path, document, "users", list), _entry(path, document, "user_data", dict)
    sizes = _entry(path, document, "num_samples", list)
    if not users:
        raise DataError(f"{path} has no users")
    if len(sizes) != len(users) or len(set(map(str, users))) != len(users):
        raise DataError(
            f"{path}: {len(users)} users, {len(sizes)} entries in num_samples; each user must be listed once"
        )
    tasks: dict[str, Task] = {}
    for user, size in zip(map(str, users), sizes, strict=True):
        where = f"{path}, user '{user}'"
        samples = data.get(user)
        if not isinstance(samples, dict) or not {"x", "y"} <= cast(dict[str, Any], samples).keys():
            raise DataError(f"{where}: no x and y in user_data")
        tasks[user] = task_of(samples["x"], samples["y"], where)
        if len(tasks[user][1]) != size:
            raise DataError(f"{where}: num_samples says {size}, there are {len(tasks[user][1])}")
    check_widths({f"user '{user}'": task for user, task in tasks.items()}, str(path))
    return tasks


def _entry(path: Path, document: Any, key: str, kind: type) -> Any:
    if not isinstance(document, dict) or key not in document:
        raise DataError(f"{path} has no entry '{key}'; a LEAF file has users, num_samples and user_data")
    value = cast(dict[str, Any], document)[key]
    if not isinstance(value, kind):
        raise DataError(f"{path}: '{key}' must be a {'list' if kind is list else 'mapping'}")
    return value
