"""Two data sets of multi-task learning: exam scores by school, and land mines by field."""

from pathlib import Path

from idiolect.core.errors import DataError
from idiolect.data.federated import FederatedData
from idiolect.data.files.folder import data_folder
from idiolect.data.files.matlab import read_tasks
from idiolect.data.sets.tasks import Options, binary, from_tasks

SCHOOL = "school.mat is published with MALSAR, https://github.com/jiayuzhou/MALSAR (data/school.mat)"
LANDMINE = (
    "LandmineData.mat was published at http://www.ee.duke.edu/~lcarin/LandmineData.zip, a small set of the same form "
    "is data/small.mat at https://github.com/gingsmith/fmtl"
)
_LANDMINE_FILES = ("LandmineData.mat", "landmine.mat", "landmine_small.mat")


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

    folder: contains `school/` (or `mtl-small/`) with school.mat; by default the environment variable IDIOLECT_DATA.
    normalisation, minimum, downsample: as for `vehicle`. The constant feature becomes 0: models have a bias.
    """
    path = _file(folder, "school", ("school.mat",), SCHOOL)
    tasks = {f"school {number:03d}": task for number, task in enumerate(read_tasks(path), 1)}
    options = Options(normalisation, minimum, test, validation, split_seed, downsample, downsample_test)
    note = "features and scores are few whole numbers: different pupils can have equal rows, in training and in test"
    return from_tasks(tasks, options, source="school", file=path.name, notes=[note])


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

    folder: contains `landmine/` (or `mtl-small/`) with LandmineData.mat, landmine.mat or landmine_small.mat; by
        default the environment variable IDIOLECT_DATA.
    normalisation, minimum, downsample: as for `vehicle`.
    (Y. Xue et al., "Multi-Task Learning for Classification with Dirichlet Process Priors", JMLR 2007.)
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
        f"fields; always to answer the larger class gives an accuracy of {majority:.1%}"
    )
    options = Options(normalisation, minimum, test, validation, split_seed, downsample, downsample_test)
    return from_tasks(tasks, options, source="landmine", file=path.name, classes=classes, notes=[note])


def _file(folder: str | Path | None, data_set: str, names: tuple[str, ...], published: str) -> Path:
    where = data_folder(folder, data_set, published, also="mtl-small")
    for name in names:
        if (where / name).is_file():
            return where / name
    raise DataError(f"{data_set}: {where} has no {' or '.join(names)}; {published}")
