"""UCI HAR as FedMultimodal deals it: 105 clients, five shards of each training person's windows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

import numpy as np

from idiolect.core.errors import require, unknown
from idiolect.data.divide.by_time import overlapping
from idiolect.data.divide.division import check_fractions, of_splits, shuffled
from idiolect.data.divide.missing import Missing, MissingPattern, drop_modalities
from idiolect.data.divide.newcomers import dealt_evenly, note_on_newcomers
from idiolect.data.encode.packing import packing
from idiolect.data.encode.scaling import check_scaling, provenance_of
from idiolect.data.federated import FederatedData
from idiolect.data.partition import Indices, Partition, apply_partition
from idiolect.data.sets.har.division import people
from idiolect.data.sets.har.files import Windows, channels_of, read_windows
from idiolect.data.sets.har.modalities import layout_of
from idiolect.data.sets.papers.fedmultimodal import MINIMUM, SEED, development, dirichlet_shards

TESTS = ("people", "own")


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
    """Human activity (UCI HAR) as FedMultimodal deals it: 105 clients, five Dirichlet shards of 21 people each.

    folder, modalities: see `har_modalities`.
    alpha: the Dirichlet's concentration; 5 and 0.1 are the published ones. seed: of the shards; 8 gives the
        published ones, draw by draw, see `fedmultimodal_shards`.
    tested_on: 'people', as published the official test people, whose windows are dealt evenly to the clients, see
        `dealt_evenly`: all test samples together are the published test set, the mean over them the published
        accuracy, but a single client's number is that of a share; or 'own', the fraction `test` of the shard,
        drawn by split_seed, for each client's own numbers, where less is left for training than as published.
    normalisation: 'window' as published, and others, see `har`.
    absence: see `Missing`.

    The published fifth of each person's windows for development, one set for all, is here dealt evenly to the
    person's shards as validation samples. As published, a person's windows, which overlap by half, are divided at
    random, so validation (and 'own' test) windows share samples with training windows; the test people's do not.
    The test people as clients themselves: `har_modalities` with split='subjects' and new=True.
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
    dealt = _dealt(windows, alpha, shards, seed, tested_on, test, split_seed)
    own = tested_on == "own"
    data = apply_partition(
        dealt,
        windows.x,
        windows.y,
        name=f"har-fedmultimodal/alpha-{alpha:g}/{tested_on}",
        task="classification",
        classes=windows.classes,
        encode=packing(layout, windows.x, normalisation, dealt.train.index),
        notes=_notes(windows, dealt, own),
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
            "leaks": [f"a person's windows overlap by half and are divided at random: {_which(own)}"],
        },
    )
    return drop_modalities(data, pattern)


def _which(own: bool) -> str:
    return "validation and test windows" if own else "validation windows"


def _dealt(
    windows: Windows, alpha: float, count: int, seed: int, tested_on: str, test: float, split_seed: int
) -> Partition:
    """The published shards with a test split for each."""
    names: list[str] = []
    parts: dict[str, list[Indices]] = {"train": [], "validation": [], "test": []}
    for person, rows in people(windows, ~windows.held).items():
        number = int(windows.subjects[rows[0]])
        train, held = development([f"{number}/{row}" for row in rows], seed)
        own = rows[train]
        names += [f"{person} shard {shard}" for shard in range(count)]
        parts["train"] += [np.sort(own[piece]) for piece in dirichlet_shards(windows.y[own], count, alpha, seed=seed)]
        parts["validation"] += dealt_evenly(rows[held], count, split_seed)
    if tested_on == "own":
        divided = [shuffled(rows, i, split_seed, test, 0.0) for i, rows in enumerate(parts["train"])]
        parts["train"], parts["test"] = [d[0] for d in divided], [d[2] for d in divided]
        notes = [f"each shard is tested on {test:g} of its own windows, which as published would train"]
    else:
        tests = np.flatnonzero(windows.held)
        parts["test"] = dealt_evenly(tests, len(names), split_seed)
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


def _notes(windows: Windows, dealt: Partition, own: bool) -> list[str]:
    """What a random division of overlapping windows lets through."""
    shares = {
        split: overlapping(dealt.rows(split).index, dealt.train.index, windows.overlaps).mean()
        for split in (("validation", "test") if own else ("validation",))
    }
    found = " and ".join(f"{share:.1%} of the {split} windows" for split, share in shares.items())
    return [
        "a person's windows, which overlap by half, are divided at random as published: "
        f"{found} share samples with a training window of the same person"
    ]
