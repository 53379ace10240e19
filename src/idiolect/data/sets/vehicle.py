"""Vehicle sensors: 23 roadside sensors, each of which tells two types of military vehicles apart.

(M. F. Duarte, Y. H. Hu, "Vehicle classification in distributed sensor networks", J. Parallel and Distributed
Computing 2004; as 23 tasks in V. Smith et al., "Federated Multi-Task Learning", NeurIPS 2017.)
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from idiolect.core.errors import DataError
from idiolect.data.federated import INCOMPLETE, FederatedData
from idiolect.data.files.folder import data_folder
from idiolect.data.files.gz import find_gz
from idiolect.data.files.leaf import read_leaf
from idiolect.data.files.matlab import Task, read_tasks
from idiolect.data.sets.tasks import Options, binary, from_tasks

PUBLISHED = (
    "mytrain.json and mytest.json are published with Ditto, https://github.com/litian96/ditto (data/vehicle); "
    "vehicle.mat, the file of MOCHA's authors, is not published with their code"
)
COMPLETE = 40_000  # the full set has more than this, however it was cut: 48,303 samples in FedU's Table II
MATLAB = "vehicle.mat"
TRAIN, TEST = "mytrain.json", "mytest.json"


def vehicle(
    folder: str | Path | None = None,
    *,
    normalisation: str = "none",
    minimum: int | None = None,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
    downsample: float | None = None,
    downsample_test: float | None = None,
) -> FederatedData:
    """Vehicle sensors: 23 sensors, two types of vehicles, 50 acoustic and 50 seismic features.

    folder: contains `vehicle/` with vehicle.mat, or with mytrain.json and mytest.json (plain or .gz), which are
        merged and divided again; by default the environment variable IDIOLECT_DATA.
    normalisation: 'none', or 'zscore-train', each feature by its mean and deviation in training.
    minimum: drop sensors with fewer samples. downsample: see `downsample`; the clients are drawn by split_seed.
    """
    where = data_folder(folder, "vehicle", PUBLISHED)
    notes: list[str] = []
    published = ("as published", "unknown")
    if (path := where / MATLAB).is_file():
        tasks = {f"sensor {number:02d}": task for number, task in enumerate(read_tasks(path), 1)}
    elif (path := find_gz(where, TRAIN) or find_gz(where / "train", TRAIN)) is not None:
        tasks, note = _leaf(path, find_gz(where, TEST) or find_gz(where / "test", TEST))
        notes.append(note)
        published = ("z-score of each sensor by the publisher", "all")
    else:
        raise DataError(f"vehicle: {where} has neither {MATLAB} nor {TRAIN} (or {TRAIN}.gz); {PUBLISHED}")
    tasks, classes = binary(tasks, str(path))
    if (count := sum(len(y) for _, y in tasks.values())) < COMPLETE:
        sizes = [len(y) for _, y in tasks.values()]
        notes.append(
            f"{INCOMPLETE}a reduced set: {count:,} samples of {len(sizes)} sensors, {min(sizes)} to {max(sizes)} "
            "each; FedU's paper has 48,303"
        )
    notes.append("classes are named by the file's labels: which vehicle is +1 is not documented")
    options = Options(normalisation, minimum, test, validation, split_seed, downsample, downsample_test)
    return from_tasks(
        tasks,
        options,
        source="vehicle",
        file=path.name,
        classes=classes,
        published=published,
        notes=notes,
    )


def _leaf(train: Path, test: Path | None) -> tuple[Mapping[str, Task], str]:
    """Each user's samples of both files, merged, and a note."""
    first = read_leaf(train)
    if test is None:
        return first, f"only {train.name} is there, without {TEST}; its samples are divided"
    second = read_leaf(test)
    if first.keys() != second.keys():
        unmatched = sorted(first.keys() ^ second.keys())[0]
        raise DataError(f"user '{unmatched}' is in only one of {train} and {test}; the files do not belong together")
    widths = [next(iter(part.values()))[0].shape[1] for part in (first, second)]
    if widths[0] != widths[1]:
        raise DataError(f"{train} has {widths[0]} features, {test} has {widths[1]}; the files do not belong together")
    merged = {
        user: (np.concatenate([x, second[user][0]]), np.concatenate([y, second[user][1]]))
        for user, (x, y) in first.items()
    }
    return merged, f"{train.name} and {test.name} are merged and divided again"
