"""Federated data from multimodal utterances of videos: each video is a client."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from idiolect.core.errors import DataError, require, unknown
from idiolect.data.divide.division import check_fractions, divide, large_enough, of_splits, shuffled, smallest
from idiolect.data.divide.missing import MissingPattern, drop_modalities
from idiolect.data.divide.newcomers import assign_evenly, note_on_known, note_on_newcomers
from idiolect.data.encode.normalisation import check_scaling, packing, provenance_of
from idiolect.data.federated import FederatedData
from idiolect.data.modalities import Modalities
from idiolect.data.partition import Indices, Partition, apply_partition

DIVISIONS = ("within", "published")
Groups = Mapping[str, Indices]


@dataclass(frozen=True, eq=False)
class Utterances:
    """Utterances as published.

    x: (n, ..., features of all modalities concatenated in the order of `layout`); y: classes, or targets if
    `classes` is empty; video: of each utterance; part: 'train', 'validation' or 'test', as published.
    """

    x: Float[np.ndarray, "n ..."]
    y: Shaped[np.ndarray, "n"]
    layout: Modalities
    video: Shaped[np.ndarray, "n"]
    part: Shaped[np.ndarray, "n"]
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, names: Sequence[str]) -> "Utterances":
        """The utterances with these modalities only."""
        if tuple(names) == self.layout.names:
            return self
        shapes = [self.layout.shapes[self.layout.index(name)] for name in names]
        ends = np.cumsum([shape[-1] for shape in self.layout.shapes])
        columns = [np.arange(ends[i] - self.layout.shapes[i][-1], ends[i]) for i in map(self.layout.index, names)]
        layout = Modalities(tuple(names), tuple(shapes))
        return Utterances(
            self.x[..., np.concatenate(columns)], self.y, layout, self.video, self.part, self.classes, self.notes
        )


@dataclass(frozen=True)
class VideoOptions:
    """The settings of every set of utterances. Raises `ConfigError` if one is out of range.

    split: 'within', each video's utterances at random into training, validation and test; or 'published', where
        the videos (and speakers) that the publisher holds out do not train, see `assign_evenly`.
    new: for split='published', the held-out videos are the clients, each divided within, to test a model trained on
        the others, before or after it has seen their training utterances.
    minimum: clients with fewer utterances are dropped; by default those that are too small to be divided.
    clients: merge the videos into so many clients; by default every video is one.
    """

    modalities: str | Sequence[str]
    clients: int | None
    split: str
    new: bool
    normalisation: str
    minimum: int | None
    test: float
    validation: float
    split_seed: int

    def __post_init__(self) -> None:
        if self.split not in DIVISIONS:
            raise unknown("split", self.split, DIVISIONS)
        require(not self.new or self.split == "published", f"new goes with split='published', not '{self.split}'")
        check_fractions(self.test, self.validation)
        check_scaling(self.normalisation)
        names = (self.modalities,) if isinstance(self.modalities, str) else tuple(self.modalities)
        require(len(names) > 0, "modalities must name one at least")
        object.__setattr__(self, "modalities", names)

    @property
    def arguments(self) -> dict[str, Any]:
        """The choices as plain values, for the provenance."""
        return {**asdict(self), "modalities": list(self.modalities)}


def from_utterances(
    pool: Utterances,
    how: VideoOptions,
    pattern: MissingPattern,
    *,
    source: str,
    arguments: Mapping[str, Any] | None = None,
    zeros_are_absent: bool = False,
) -> FederatedData:
    """Federated data with a client for each video.

    arguments: those of the data set's function, for the provenance; zeros_are_absent: see `packing`.
    """
    pool = pool.of(how.modalities)
    training_partition = (
        _known(pool, how, source) if how.split == "published" else _within(pool, how, _videos(pool), source)
    )
    partition = _newcomers(pool, how, source) if how.new else training_partition
    data = apply_partition(
        partition,
        pool.x,
        pool.y,
        name=f"{source}/{'+'.join(pool.layout.names)}/{how.split}{'/new' if how.new else ''}",
        task="classification" if pool.classes else "regression",
        classes=pool.classes,
        encode=packing(
            pool.layout, pool.x, how.normalisation, training_partition.train.index, zeros_are_absent=zeros_are_absent
        ),
        notes=pool.notes,
        modalities=pool.layout,
        provenance={
            "source": source,
            "arguments": {**(arguments or {}), **how.arguments, **pattern.arguments},
            "normalisation": provenance_of(how.normalisation, "as published", "unknown"),
        },
    )
    return drop_modalities(data if how.clients is None else data.merged(how.clients), pattern)


def _videos(pool: Utterances, *parts: str) -> dict[str, Indices]:
    """The utterances of each video; parts: only those of these published parts."""
    rows = np.flatnonzero(np.isin(pool.part, parts)) if parts else np.arange(len(pool.y))
    names, code = np.unique(pool.video[rows], return_inverse=True)
    return {str(name): rows[code == number] for number, name in enumerate(names)}


def _within(pool: Utterances, how: VideoOptions, videos: Groups, source: str, notes: Sequence[str] = ()) -> Partition:
    """Divide each video's utterances at random."""
    least = smallest(how.test) if how.minimum is None else how.minimum
    kept, dropped = large_enough({video: len(rows) for video, rows in videos.items()}, least, source)
    return divide(
        [videos[video] for video in kept],
        pool.x,
        pool.y,
        name="within",
        clients=kept,
        test=how.test,
        validation=how.validation,
        split_seed=how.split_seed,
        parameters={"minimum": least},
        notes=[*notes, *dropped],
    )


def _new(pool: Utterances, source: str) -> dict[str, Indices]:
    held_out = _videos(pool, "test")
    if not held_out:
        raise DataError(f"{source}: no utterance is of the published test part, which split='published' needs")
    return held_out


def _newcomers(pool: Utterances, how: VideoOptions, source: str) -> Partition:
    """The held-out videos as clients, each divided within."""
    new = _new(pool, source)
    note = note_on_known("videos", len(new), len(_videos(pool, "train", "validation")))
    return _within(pool, how, new, source, [note])


def _known(pool: Utterances, how: VideoOptions, source: str) -> Partition:
    """The published training videos as clients, to which the published test utterances are assigned evenly.

    So are the published validation utterances; if there are none, each client's own are divided.
    """
    videos = _videos(pool, "train")
    kept, notes = large_enough({video: len(rows) for video, rows in videos.items()}, how.minimum, source)
    groups, new = [videos[video] for video in kept], _new(pool, source)
    tests = np.concatenate(list(new.values()))
    validation_rows = np.flatnonzero(pool.part == "validation")
    notes = [note_on_newcomers("videos", list(new), len(tests)), *notes]
    if len(validation_rows):
        validation = assign_evenly(validation_rows, len(groups), how.split_seed, least=0)
        notes.append("the published validation utterances, of videos that do not train, are dealt likewise")
    else:
        divided = [shuffled(rows, i, how.split_seed, 0.0, how.validation) for i, rows in enumerate(groups)]
        groups, validation = [d[0] for d in divided], [d[1] for d in divided]
    return of_splits(
        {"train": groups, "validation": validation, "test": assign_evenly(tests, len(groups), how.split_seed)},
        pool.x,
        pool.y,
        name="published",
        seed=how.split_seed,
        clients=kept,
        parameters={"minimum": how.minimum, "validation": how.validation, "split_seed": how.split_seed},
        notes=notes,
    )
