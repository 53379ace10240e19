"""Data sets of multi-task learning, of which each task is a client: exam scores, land mines, vehicle sensors."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from idiolect.core.errors import DataError
from idiolect.core.plugins import named
from idiolect.data.divide.division import divide, downsample, large_enough
from idiolect.data.encode.normalisation import check_scaling, provenance_of, standardise
from idiolect.data.federated import INCOMPLETE, FederatedData
from idiolect.data.files.archive import data_folder, find_gz
from idiolect.data.files.tasks import Task, read_leaf, read_tasks
from idiolect.data.partition import apply_partition

SIGNS = ((-1, 1), (0, 1))


@dataclass(frozen=True)
class TaskOptions:
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
    options: TaskOptions,
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


SCHOOL = "school.mat is published with MALSAR, https://github.com/jiayuzhou/MALSAR (data/school.mat)"
LANDMINE = (
    "LandmineData.mat was published at http://www.ee.duke.edu/~lcarin/LandmineData.zip, a small set of the same form "
    "is data/small.mat at https://github.com/gingsmith/fmtl"
)
_LANDMINE_FILES = ("LandmineData.mat", "landmine.mat", "landmine_small.mat")


@named("school")
def school(
    folder: str | Path | None = None,
    *,
    normalisation: str = "zscore-train",
    minimum: int | None = None,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
    downsample: float | None = None,
    downsample_test: float | None = None,
) -> FederatedData:
    """School: exam scores of 15,362 pupils in 139 London schools, a regression on 28 features.

    The constant feature becomes 0, since models have a bias.

    Args:
        folder: Contains `school/` (or `mtl-small/`) with school.mat; by default the environment variable
            IDIOLECT_DATA.
        normalisation: As for `vehicle`.
        minimum: As for `vehicle`.
        downsample: As for `vehicle`.
    """
    path = _file(folder, "school", ("school.mat",), SCHOOL)
    tasks = {f"school {number:03d}": task for number, task in enumerate(read_tasks(path), 1)}
    options = TaskOptions(normalisation, minimum, test, validation, split_seed, downsample, downsample_test)
    note = "features and scores are few whole numbers: different pupils can have equal rows, in training and in test"
    return from_tasks(tasks, options, source="school", file=path.name, notes=[note])


@named("landmine", task="classification")
def landmine(
    folder: str | Path | None = None,
    *,
    normalisation: str = "zscore-train",
    minimum: int | None = None,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
    downsample: float | None = None,
    downsample_test: float | None = None,
) -> FederatedData:
    """Landmine: radar images of 29 fields, mine or clutter, 9 features.

    (Y. Xue et al., "Multi-Task Learning for Classification with Dirichlet Process Priors", JMLR 2007.)

    Args:
        folder: Contains `landmine/` (or `mtl-small/`) with LandmineData.mat, landmine.mat or landmine_small.mat; by
            default the environment variable IDIOLECT_DATA.
        normalisation: As for `vehicle`.
        minimum: As for `vehicle`.
        downsample: As for `vehicle`.
    """
    path = _file(folder, "landmine", _LANDMINE_FILES, LANDMINE)
    tasks = {f"field {number:02d}": task for number, task in enumerate(read_tasks(path), 1)}
    tasks, classes = binary(tasks, str(path))
    samples = sum(len(y) for _, y in tasks.values())
    mines = int(sum(y.sum() for _, y in tasks.values()))
    none = sum(1 for _, y in tasks.values() if y.sum() == 0)
    majority = max(mines, samples - mines) / samples
    note = (
        f"{path.name}: {mines:,} of {samples:,} samples are of class {classes[1]}, none in {none} of {len(tasks)} "
        f"fields; always predicting the larger class gives an accuracy of {majority:.1%}"
    )
    options = TaskOptions(normalisation, minimum, test, validation, split_seed, downsample, downsample_test)
    return from_tasks(tasks, options, source="landmine", file=path.name, classes=classes, notes=[note])


def _file(folder: str | Path | None, data_set: str, names: tuple[str, ...], published: str) -> Path:
    where = data_folder(folder, data_set, published, also="mtl-small")
    for name in names:
        if (where / name).is_file():
            return where / name
    raise DataError(f"{data_set}: {where} has no {' or '.join(names)}; {published}")


VEHICLE_PUBLISHED = (
    "mytrain.json and mytest.json are published with Ditto, https://github.com/litian96/ditto (data/vehicle); "
    "vehicle.mat, the file of MOCHA's authors, is not published with their code"
)
VEHICLE_COMPLETE = 40_000  # the full set has more than this, however it was cut: 48,303 samples in FedU's Table II
MATLAB = "vehicle.mat"
TRAIN, TEST = "mytrain.json", "mytest.json"


@named("vehicle", task="classification")
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

    Args:
        folder: Contains `vehicle/` with vehicle.mat, or with mytrain.json and mytest.json (plain or .gz), which are
            merged and divided again; by default the environment variable IDIOLECT_DATA.
        normalisation: 'none', or 'zscore-train', each feature by its mean and deviation in training.
        minimum: Drop sensors with fewer samples.
        downsample: See `downsample`; the clients are drawn by split_seed.
    """
    where = data_folder(folder, "vehicle", VEHICLE_PUBLISHED)
    notes: list[str] = []
    published = ("as published", "unknown")
    if (path := where / MATLAB).is_file():
        tasks = {f"sensor {number:02d}": task for number, task in enumerate(read_tasks(path), 1)}
    elif (path := find_gz(where, TRAIN) or find_gz(where / "train", TRAIN)) is not None:
        tasks, note = _leaf(path, find_gz(where, TEST) or find_gz(where / "test", TEST))
        notes.append(note)
        published = ("z-score of each sensor by the publisher", "all")
    else:
        raise DataError(f"vehicle: {where} has neither {MATLAB} nor {TRAIN} (or {TRAIN}.gz); {VEHICLE_PUBLISHED}")
    tasks, classes = binary(tasks, str(path))
    if (count := sum(len(y) for _, y in tasks.values())) < VEHICLE_COMPLETE:
        sizes = [len(y) for _, y in tasks.values()]
        notes.append(
            f"{INCOMPLETE}a reduced set: {count:,} samples of {len(sizes)} sensors, {min(sizes)} to {max(sizes)} "
            "each; FedU's paper has 48,303"
        )
    notes.append("classes are named by the file's labels: which vehicle is +1 is not documented")
    options = TaskOptions(normalisation, minimum, test, validation, split_seed, downsample, downsample_test)
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
