"""Divide UCI HAR's windows: each person's by time or at random, or hold out some people for testing."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool

from idiolect.core.errors import DataError, require, unknown
from idiolect.data.divide.by_time import by_time, overlapping
from idiolect.data.divide.division import check_fractions, divide, of_splits
from idiolect.data.divide.downsample import downsample
from idiolect.data.divide.newcomers import assign_evenly, note_on_known, note_on_newcomers
from idiolect.data.federated import INCOMPLETE, SPLITS
from idiolect.data.partition import Indices, Partition
from idiolect.data.sets.har.files import COMPLETE, Windows

DIVISIONS = ("blocked", "random", "subjects")
LEAK = "windows overlap by half and are split at random"


@dataclass(frozen=True)
class Division:
    """The settings of a division, see `har`. Raises `ConfigError` if one is out of range or contradicts another."""

    split: str
    new: bool
    held_out: Sequence[int] | None
    test: float
    validation: float
    split_seed: int
    downsample: float | None
    downsample_test: float | None

    def __post_init__(self) -> None:
        if self.split not in DIVISIONS:
            raise unknown("split", self.split, DIVISIONS)
        check_fractions(self.test, self.validation)
        for name, value in (("new", self.new), ("held_out", self.held_out is not None)):
            require(not value or self.split == "subjects", f"{name} goes with split='subjects', not '{self.split}'")

    @property
    def arguments(self) -> dict[str, Any]:
        """The choices as plain values, for the provenance."""
        return {**asdict(self), "held_out": None if self.held_out is None else list(self.held_out)}


@dataclass(frozen=True, eq=False)
class Divided:
    """A partition of the windows, the windows on which normalisation is fitted, and the leaks by design."""

    partition: Partition
    fitted: Indices
    leaks: tuple[str, ...]


def divided(windows: Windows, how: Division) -> Divided:
    """Divide the windows by the given settings."""
    training_people = downsample(
        _known(windows, how), windows.y, how.downsample, test=how.downsample_test, seed=how.split_seed
    )
    partition = _newcomers(windows, how) if how.new else training_people
    return Divided(partition, training_people.train.index, (LEAK,) if how.split == "random" else ())


def notes_on(windows: Windows, division: Divided) -> list[str]:
    """The notes on the windows: what leaks, and whether the data set is complete."""
    notes = [_leak(windows, division.partition)] if division.leaks else []
    if len(windows.y) != COMPLETE:
        notes.append(f"{INCOMPLETE}{len(windows.y):,} windows of {COMPLETE:,}")
    return notes


def people(windows: Windows, which: Bool[np.ndarray, "n"] | None = None) -> dict[str, Indices]:
    """Each person's windows by name; which: only people who have one of these windows."""
    persons = np.unique(windows.subjects if which is None else windows.subjects[which])
    return {f"subject {person:02d}": np.flatnonzero(windows.subjects == person) for person in persons}


def _known(windows: Windows, how: Division) -> Partition:
    if how.split == "random":
        return _random(windows, how)
    if how.split == "blocked":
        return _blocked(windows, people(windows), how)
    held = _held(windows, how.held_out)
    training_people, new = people(windows, ~held), people(windows, held)
    rows, note = _by_time(windows, training_people, 0.0, how.validation)
    tests = np.concatenate(list(new.values()))
    return of_splits(
        {"train": rows[0], "validation": rows[1], "test": assign_evenly(tests, len(training_people), how.split_seed)},
        windows.x,
        windows.y,
        name="subjects",
        seed=how.split_seed,
        clients=list(training_people),
        parameters={"clients": len(training_people), "new": list(new), "validation": how.validation},
        notes=[note_on_newcomers("people", list(new), len(tests)), *([note] if how.validation else [])],
    )


def _newcomers(windows: Windows, how: Division) -> Partition:
    """The held-out people as clients, each divided by time."""
    held = _held(windows, how.held_out)
    training_people, new = people(windows, ~held), people(windows, held)
    return _blocked(windows, new, how, [note_on_known("people", len(new), len(training_people))])


def _held(windows: Windows, people_held_out: Sequence[int] | None) -> Bool[np.ndarray, "n"]:
    """The windows of the people who are held out."""
    if people_held_out is None:
        return windows.held
    for person in people_held_out:
        if person not in windows.subjects:
            raise DataError(f"held_out names subject {person}, who has no windows")
    held = np.isin(windows.subjects, list(people_held_out))
    require(bool(held.any()) and not held.all(), "held_out must name one person at least, and leave one for training")
    return held


def _random(windows: Windows, how: Division) -> Partition:
    """Each person's windows at random, as in the papers."""
    groups = people(windows)
    return divide(
        list(groups.values()),
        windows.x,
        windows.y,
        name="random",
        clients=list(groups),
        test=how.test,
        validation=how.validation,
        split_seed=how.split_seed,
    )


def _leak(windows: Windows, partition: Partition) -> str:
    """The note on the leak of a random division."""
    leaked = overlapping(partition.test.index, partition.train.index, windows.overlaps).mean()
    return (
        f"windows overlap by half and are split at random, as in the papers: {leaked:.1%} of the test windows share "
        "samples with a training window of the same person, which flatters accuracy; split='blocked' has no such leak"
    )


def _blocked(windows: Windows, groups: dict[str, Indices], how: Division, notes: Sequence[str] = ()) -> Partition:
    """Each person's activities divided by time."""
    rows, note = _by_time(windows, groups, how.test, how.validation)
    return of_splits(
        dict(zip(SPLITS, rows, strict=True)),
        windows.x,
        windows.y,
        name="blocked",
        clients=list(groups),
        parameters={"clients": len(groups), "test": how.test, "validation": how.validation},
        notes=[note, *notes],
    )


def _by_time(
    windows: Windows, groups: dict[str, Indices], test: float, validation: float
) -> tuple[list[list[Indices]], str]:
    """Divide each person's activities by time: ([train, validation, test] of all people, a note)."""
    parts = [
        by_time([rows[windows.y[rows] == k] for k in np.unique(windows.y[rows])], windows.overlaps, test, validation)
        for rows in groups.values()
    ]
    dropped = sum(map(len, groups.values())) - sum(len(part) for person in parts for part in person)
    how = "" if windows.measured else " (no signal files: all neighbours of one activity count as overlapping)"
    last = "testing" if test else "validation"
    note = (
        f"of each person's activity the first windows are for training, the last for {last}; "
        f"{dropped} windows that overlap a later split are left out{how}"
    )
    return [list(column) for column in zip(*parts, strict=True)], note
