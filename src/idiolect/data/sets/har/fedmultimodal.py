"""UCI HAR as FedMultimodal divides it: 105 clients, five shards of each training person's windows.

The draws are those of the published code. (T. Feng et al., "FedMultimodal: A Benchmark for Multimodal Federated
Learning", KDD 2023; github.com/usc-sail/fed-multimodal, features/data_partitioning.)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

import numpy as np
from jaxtyping import Int, Shaped

from idiolect.core.errors import DataError, require, unknown
from idiolect.core.plugins import named
from idiolect.data.divide.division import check_fractions, of_splits, overlapping, shuffled
from idiolect.data.divide.missing import Missing, MissingPattern, drop_modalities
from idiolect.data.divide.newcomers import assign_evenly, note_on_newcomers
from idiolect.data.encode.normalisation import check_scaling, packing, provenance_of
from idiolect.data.federated import FederatedData
from idiolect.data.partition import Indices, Partition, apply_partition
from idiolect.data.sets.har.har import layout_of
from idiolect.data.sets.har.windows import Windows, channels_of, people, read_windows

SEED = 8
MINIMUM = 5
HELD = 5  # one in five samples is for development
_DRAWS = 1000


def development(keys: list[str], seed: int = SEED) -> tuple[Indices, Indices]:
    """(training, development): positions in `keys`; a fifth of them, rounded down, is for development.

    The published code sorts a person's samples by their keys as texts, '7/10' before '7/9', then shuffles them.
    """
    by_text = np.array(sorted(range(len(keys)), key=keys.__getitem__))
    # numpy's legacy generator, whose draws never change, reproduces the published split.
    order = np.random.RandomState(seed).permutation(len(keys))
    cut = len(keys) // HELD
    return by_text[order[cut:]], by_text[order[:cut]]


def dirichlet_shards(
    labels: Shaped[np.ndarray, "n"], count: int, alpha: float, *, seed: int = SEED, minimum: int = MINIMUM
) -> list[Indices]:
    """The positions of each shard's samples; all is redrawn until each of `count` shards has `minimum` samples.

    Each class is divided in proportions p ~ Dir(alpha, ..., alpha) among the shards with fewer than n / count
    samples. Raises `DataError` if no draw succeeds.
    """
    random = np.random.RandomState(seed)
    total = len(labels)
    for _ in range(_DRAWS):
        parts: list[list[Int[np.ndarray, "_"]]] = [[] for _ in range(count)]
        sizes = np.zeros(count, dtype=np.int64)
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            random.shuffle(rows)
            drawn = random.dirichlet(np.full(count, alpha)) * (sizes < total / count)
            # If every shard with a share is full, the last one gets the class, as in the published code.
            share = np.cumsum(drawn / drawn.sum()) if drawn.sum() > 0 else np.zeros(count)
            pieces = np.split(rows, (share * len(rows)).astype(np.int64)[:-1])
            for part, piece in zip(parts, pieces, strict=True):
                part.append(piece)
            sizes += [len(piece) for piece in pieces]
        if sizes.min() >= minimum:
            return [np.concatenate(part) for part in parts]
    raise DataError(
        f"no draw of {_DRAWS} gives each of {count} shards {minimum} of {total} samples; raise alpha ({alpha}) or "
        "lower the number of shards"
    )


TESTS = ("people", "own")


@named("har-fedmultimodal", task="classification")
def har_fedmultimodal(
    folder: str | Path | None = None,
    modalities: str | Sequence[str] = ("body_acc", "body_gyro"),
    *,
    alpha: float = 5.0,
    shards: int = 5,
    seed: int = SEED,
    tested_on: str = "people",
    normalisation: str = "window",
    test: float = 0.25,
    split_seed: int = 0,
    **absence: Unpack[Missing],
) -> FederatedData:
    """Human activity (UCI HAR) as FedMultimodal divides it: 105 clients, five Dirichlet shards of 21 people each.

    All other settings: see `Missing`.

    The published development set, a fifth of each person's windows, is assigned evenly to the person's shards as
    validation samples. As published, a person's windows, which overlap by half, are divided at random, so validation
    (and 'own' test) windows share samples with training windows; the test people's windows do not.

    For the test people as clients use `har_modalities` with split='subjects' and new=True.

    Args:
        folder: See `har_modalities`.
        modalities: See `har_modalities`.
        alpha: The Dirichlet concentration; 5 and 0.1 are the published ones.
        seed: Draws the shards; 8 gives the published ones exactly, see `dirichlet_shards`.
        tested_on: 'people', the official test people as published, whose windows are assigned evenly to the clients
            (see `assign_evenly`): all test samples together are the published test set, so their mean is the
            published accuracy, but a single client's result is that of its share only. Or 'own', the fraction `test`
            of each client's shard, drawn by split_seed, for results per client; this leaves less for training than
            published.
        normalisation: 'window' as published, or another one, see `har`.
    """
    pattern = MissingPattern(**absence)
    layout = layout_of(modalities)
    require(alpha > 0, f"alpha must be positive, it is {alpha}")
    require(shards >= 1, f"shards must be at least 1, it is {shards}")
    require(seed >= 0, f"seed must not be negative, it is {seed}")
    if tested_on not in TESTS:
        raise unknown("tested_on", tested_on, TESTS)
    check_fractions(test, 0.0)
    check_scaling(normalisation)
    windows = read_windows(folder, "signals", channels_of(layout.names))
    partition = _partition(windows, alpha, shards, seed, tested_on, test, split_seed)
    on_own_shard = tested_on == "own"
    data = apply_partition(
        partition,
        windows.x,
        windows.y,
        name=f"har-fedmultimodal/alpha-{alpha:g}/{tested_on}",
        task="classification",
        classes=windows.classes,
        encode=packing(layout, windows.x, normalisation, partition.train.index),
        notes=_notes(windows, partition, on_own_shard),
        modalities=layout,
        provenance={
            "source": "har-fedmultimodal",
            "arguments": {
                "modalities": list(layout.names),
                "alpha": alpha,
                "shards": shards,
                "seed": seed,
                "tested_on": tested_on,
                "normalisation": normalisation,
                "test": test,
                "split_seed": split_seed,
                **pattern.arguments,
            },
            "normalisation": provenance_of(normalisation, "none", "nothing"),
            "leaks": [f"a person's windows overlap by half and are divided at random: {_which(on_own_shard)}"],
        },
    )
    return drop_modalities(data, pattern)


def _which(own: bool) -> str:
    return "validation and test windows" if own else "validation windows"


def _partition(
    windows: Windows, alpha: float, count: int, seed: int, tested_on: str, test: float, split_seed: int
) -> Partition:
    """The published shards with a test split for each."""
    names: list[str] = []
    parts: dict[str, list[Indices]] = {"train": [], "validation": [], "test": []}
    for person, rows in people(windows, ~windows.held).items():
        number = int(windows.subjects[rows[0]])
        train, development_positions = development([f"{number}/{row}" for row in rows], seed)
        train_rows = rows[train]
        names += [f"{person} shard {shard}" for shard in range(count)]
        parts["train"] += [
            np.sort(train_rows[piece]) for piece in dirichlet_shards(windows.y[train_rows], count, alpha, seed=seed)
        ]
        parts["validation"] += assign_evenly(rows[development_positions], count, split_seed)
    if tested_on == "own":
        divided = [shuffled(rows, i, split_seed, test, 0.0) for i, rows in enumerate(parts["train"])]
        parts["train"], parts["test"] = [d[0] for d in divided], [d[2] for d in divided]
        notes = [f"each shard is tested on {test:g} of its own windows, which as published would train"]
    else:
        tests = np.flatnonzero(windows.held)
        parts["test"] = assign_evenly(tests, len(names), split_seed)
        notes = [note_on_newcomers("people", list(people(windows, windows.held)), len(tests))]
    return of_splits(
        parts,
        windows.x,
        windows.y,
        name="fedmultimodal",
        seed=seed,
        clients=names,
        parameters={
            "alpha": alpha,
            "shards": count,
            "minimum": MINIMUM,
            "tested_on": tested_on,
            "test": test,
            "split_seed": split_seed,
        },
        notes=notes,
    )


def _notes(windows: Windows, partition: Partition, own: bool) -> list[str]:
    """The note on the leak of a random division of overlapping windows."""
    shares = {
        split: overlapping(partition.rows(split).index, partition.train.index, windows.overlaps).mean()
        for split in (("validation", "test") if own else ("validation",))
    }
    leaked = " and ".join(f"{share:.1%} of the {split} windows" for split, share in shares.items())
    return [
        "a person's windows, which overlap by half, are divided at random as published: "
        f"{leaked} share samples with a training window of the same person"
    ]
