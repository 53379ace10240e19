"""PFLEGO's partitions: each client draws K classes, and each class's images go to its holders in turn.

S. Nikoloutsopoulos, I. Koutsopoulos, M. K. Titsias, "Personalized Federated Learning with Exact Stochastic Gradient
Descent", section 4.3 and appendix A.2.
"""

from functools import partial

import numpy as np
from jaxtyping import Int, Int32

from idiolect.core.errors import DataError, require
from idiolect.data.divide.division import of_splits, shuffled, stream
from idiolect.data.partition import Indices, Partition
from idiolect.data.sets.image_set import ImagePartitioner, ImageSet

CLIENTS = 100
NAME = "pflego-"
_Rows = list[Int[np.ndarray, "_"]]


def pflego(
    pool: ImageSet,
    level: str,
    *,
    clients: int = CLIENTS,
    seed: int = 0,
    validation: float = 0.1,
    split_seed: int = 0,
) -> Partition:
    """Degree of personalization: 'high' (K = 2 classes a client), 'medium' (half of them) or 'none' (all).

    If the draw leaves classes without a holder, the first clients take the classes in a random order instead,
    K each, as in the published code; with too few clients for that, a note names the unused classes. A class's
    shuffled images go to its holders one by one in turn, official training and test images separately. If one
    official part is missing, each class is first divided at random in the official ratio.

    seed: draws classes and images. validation: fraction of a client's training images, drawn by split_seed.
    Raises `ConfigError` on a setting out of range and `DataError` if a client gets no training or test image.
    """
    classes = len(pool.classes)
    classes_each = {"high": 2, "medium": classes // 2, "none": classes}[level]
    require(clients >= 1, f"clients must be at least 1, it is {clients}")
    require(1 <= classes_each <= classes, f"partition '{NAME}{level}' needs two classes or more, there are {classes}")
    require(0 <= validation < 1, f"validation fraction must be at least 0 and below 1, it is {validation}")
    random = stream(seed, 0)
    holders = _holders(classes, clients, classes_each, random)
    train, test, notes = _official(pool, random)
    train_groups, test_groups = (_assign(part, holders, clients) for part in (train, test))
    for what, groups in (("training", train_groups), ("test", test_groups)):
        sizes = [len(group) for group in groups]
        if min(sizes) == 0:
            raise DataError(
                f"client {sizes.index(0)} gets no {what} image of its {classes_each} classes; use fewer clients"
            )
    divided = [shuffled(rows, i, split_seed, 0.0, validation) for i, rows in enumerate(train_groups)]
    unused = [pool.classes[label] for label, owners in enumerate(holders) if len(owners) == 0]
    if unused:
        notes.append(f"{len(unused)} of {classes} classes have no holder and stay unused: {', '.join(unused)}")
    digits = len(str(clients - 1))
    return of_splits(
        {"train": [d[0] for d in divided], "validation": [d[1] for d in divided], "test": test_groups},
        pool.images,
        pool.labels,
        name=NAME + level,
        clients=[f"client {i:0{digits}d}" for i in range(clients)],
        seed=seed,
        parameters={"clients": clients, "k": classes_each, "validation": validation, "split_seed": split_seed},
        notes=notes,
    )


PFLEGO: dict[str, ImagePartitioner] = {
    NAME + level: partial(pflego, level=level) for level in ("high", "medium", "none")
}


def _holders(classes: int, clients: int, classes_each: int, random: np.random.Generator) -> _Rows:
    """The clients that hold each class, in ascending order."""
    drawn = np.stack([random.choice(classes, classes_each, replace=False) for _ in range(clients)])
    if len(np.unique(drawn)) < classes <= clients * classes_each:
        order = random.permutation(classes)
        first = -(-classes // classes_each)
        drawn[:first] = np.resize(order, (first, classes_each))
    return [np.flatnonzero((drawn == label).any(axis=1)) for label in range(classes)]


def _official(pool: ImageSet, random: np.random.Generator) -> tuple[_Rows, _Rows, list[str]]:
    """(shuffled training images of each class, test images of each class, notes)."""
    classes = range(len(pool.classes))
    parts = [pool.labels[: pool.trained], pool.labels[pool.trained :]]
    if all(len(part) for part in parts):
        train, test = ([random.permutation(_of_class(part, label)) for label in classes] for part in parts)
        return train, [rows + pool.trained for rows in test], []
    rows = [random.permutation(_of_class(pool.labels, label)) for label in classes]
    cuts = [max(round(len(part) * pool.test_share), min(1, len(part) - 1)) for part in rows]
    note = (
        f"the official {'test' if pool.trained else 'training'} part is not used: {pool.test_share:.3g} of each "
        "class, the official ratio, is set aside for testing at random"
    )
    pieces = [(part[cut:], part[:cut]) for part, cut in zip(rows, cuts, strict=True)]
    return [p[0] for p in pieces], [p[1] for p in pieces], [note]


def _of_class(labels: Int32[np.ndarray, "n"], label: int) -> Indices:
    return np.flatnonzero(labels == label)


def _assign(by_class: _Rows, holders: _Rows, clients: int) -> _Rows:
    """Give each class's images to its holders, one by one in turn."""
    groups: list[_Rows] = [[] for _ in range(clients)]
    for rows, owners in zip(by_class, holders, strict=True):
        for turn, owner in enumerate(owners):
            groups[owner].append(rows[turn :: len(owners)])
    return [np.sort(np.concatenate(group)) for group in groups]
