"""Read the JSON of the LEAF benchmark: users, num_samples, and user_data with the x and y of each user.

(S. Caldas et al., "LEAF: A Benchmark for Federated Settings", arXiv:1812.01097.)
"""

from pathlib import Path
from typing import Any, cast

from idiolect.core.errors import DataError
from idiolect.core.reading import json_of
from idiolect.data.files.gz import AGAIN, read_gz
from idiolect.data.files.matlab import Task, check_widths, task_of


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
        raise DataError(f"{path}: {len(users)} users, {len(sizes)} entries in num_samples; each user must stand once")
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
