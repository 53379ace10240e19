"""The windows of Human Activity Recognition Using Smartphones (UCI HAR): read the published files, and divide them.

Each person's windows are divided by time or at random, or some people are held out for testing.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Int32

from idiolect.core.errors import DataError, require, unknown
from idiolect.data.divide.division import by_time, check_fractions, divide, downsample, of_splits, overlapping
from idiolect.data.divide.newcomers import assign_evenly, note_on_known, note_on_newcomers
from idiolect.data.federated import INCOMPLETE, SPLITS
from idiolect.data.files.archive import Members, data_folder, find_members, read_numbers
from idiolect.data.partition import Indices, Partition

PUBLISHED = (
    "'UCI HAR Dataset.zip' is published at "
    "https://archive.ics.uci.edu/dataset/240/human+activity+recognition+using+smartphones"
)
SENSORS = ("body_acc", "body_gyro", "total_acc")
CHANNELS = tuple(f"{sensor}_{axis}" for sensor in SENSORS for axis in "xyz")
KINDS = ("561", "265", "signals")
WINDOW, STEP = 128, 64  # samples at 50 Hz; each window shares its second half with the next one
COMPLETE = 10_299

_PARTS = ("train", "test")
_MARKER = "activity_labels.txt"


@dataclass(frozen=True, eq=False)
class Windows:
    """All windows, the official training files before the test files, each subject's in the order of time.

    x: (n, 561), (n, 265) or (n, 128, channels); y: activities 0, 1, ...; classes: their names.
    held: whether the window is of the official test files; their people are not in the training files.
    overlaps: whether a window's first half equals the second half of the window before it.
    measured: whether `overlaps` was computed from the signals; without them all consecutive windows of the same
        subject and activity count as overlapping.
    """

    x: Float32[np.ndarray, "n ..."]
    y: Int32[np.ndarray, "n"]
    subjects: Int32[np.ndarray, "n"]
    held: Bool[np.ndarray, "n"]
    overlaps: Bool[np.ndarray, "n"]
    measured: bool
    classes: tuple[str, ...]
    kind: str


def channels_of(signals: Sequence[str]) -> tuple[str, ...]:
    """The channels of the named signals; a sensor stands for its three axes. Raises `ConfigError` on a bad name."""
    channels: list[str] = []
    for name in signals:
        if name not in (*SENSORS, *CHANNELS):
            raise unknown("signal", name, (*SENSORS, *CHANNELS))
        channels += [name] if name in CHANNELS else [f"{name}_{axis}" for axis in "xyz"]
    require(len(channels) > 0, "signals must name at least one sensor or channel")
    require(len(set(channels)) == len(channels), f"signals names a channel twice: {', '.join(channels)}")
    return tuple(channels)


def read_windows(folder: str | Path | None, kind: str | None, channels: Sequence[str] = CHANNELS) -> Windows:
    """Read the windows; kind: of `KINDS`, by default '561', or '265' if there are only the reduced files."""
    members = find_members(data_folder(folder, "har", PUBLISHED), _MARKER, PUBLISHED)
    if kind is None:
        kind = "561" if "train/X_train.txt" in members else "265"
    classes = _classes(members)
    labels = [_whole(members, f"{part}/y_{part}.txt") for part in _PARTS]
    subjects = [_whole(members, f"{part}/subject_{part}.txt") for part in _PARTS]
    for part, activities, persons in zip(_PARTS, labels, subjects, strict=True):
        _same_rows(members, f"{part}/subject_{part}.txt", len(persons), f"y_{part}.txt", len(activities))
        if len(bad := np.flatnonzero((activities < 1) | (activities > len(classes)))):
            raise DataError(
                f"{members.where}: {part}/y_{part}.txt has the label {activities[bad[0]]} in row {bad[0] + 1}; "
                f"activities are 1..{len(classes)}"
            )
    parts = [
        _features(members, part, kind, channels, len(activities))
        for part, activities in zip(_PARTS, labels, strict=True)
    ]
    overlaps, measured = _overlaps(members, labels, subjects)
    return Windows(
        x=np.concatenate(parts),
        y=np.concatenate(labels) - 1,
        subjects=np.concatenate(subjects),
        held=np.repeat([False, True], [len(activities) for activities in labels]),
        overlaps=overlaps,
        measured=measured,
        classes=classes,
        kind=kind,
    )


def _features(
    members: Members, part: str, kind: str, channels: Sequence[str], rows: int
) -> Float32[np.ndarray, "..."]:
    """The features of the official training or test windows."""
    if kind == "signals":
        stacked = np.empty((rows, WINDOW, len(channels)), dtype=np.float32)
        for number, channel in enumerate(channels):
            stacked[:, :, number] = _signal(members, part, channel, rows)
        return stacked
    whole, reduced = f"{part}/X_{part}.txt", f"{part}/X_{part}_first265.txt"
    if kind == "561" and whole not in members and reduced in members:
        raise DataError(
            f"{members.where} has only the first 265 of the 561 features; use features=265, or {PUBLISHED}"
        )
    name = reduced if kind == "265" and reduced in members else whole
    columns = 265 if name == reduced else 561
    table = read_numbers(members.read(name, PUBLISHED), f"{members.where}: {name}", columns)
    _same_rows(members, name, len(table), f"y_{part}.txt", rows)
    return table[:, : int(kind)].astype(np.float32)


def _signal(members: Members, part: str, channel: str, rows: int) -> Float32[np.ndarray, "rows window"]:
    name = f"{part}/Inertial Signals/{channel}_{part}.txt"
    table = read_numbers(members.read(name, PUBLISHED), f"{members.where}: {name}", WINDOW)
    _same_rows(members, name, len(table), f"y_{part}.txt", rows)
    return table.astype(np.float32)


def _overlaps(
    members: Members, labels: Sequence[Int32[np.ndarray, "_"]], subjects: Sequence[Int32[np.ndarray, "_"]]
) -> tuple[Bool[np.ndarray, "n"], bool]:
    """(whether each window overlaps the one before it, whether that was measured on the signals)."""
    complete_channels = [
        channel
        for channel in CHANNELS
        if all(f"{part}/Inertial Signals/{channel}_{part}.txt" in members for part in _PARTS)
    ]
    overlap_parts: list[Bool[np.ndarray, "_"]] = []
    for part, activities, persons in zip(_PARTS, labels, subjects, strict=True):
        overlap = np.zeros(len(activities), dtype=bool)
        overlap[1:] = persons[1:] == persons[:-1]
        if complete_channels:
            signal = _signal(members, part, complete_channels[0], len(activities))
            # Both windows print the same samples; files converted through single precision may differ in a digit.
            overlap[1:] &= np.isclose(signal[1:, :STEP], signal[:-1, STEP:], rtol=1e-5, atol=1e-6).all(axis=1)
        else:
            overlap[1:] &= activities[1:] == activities[:-1]
        overlap_parts.append(overlap)
    return np.concatenate(overlap_parts), bool(complete_channels)


def _classes(members: Members) -> tuple[str, ...]:
    """The names of the activities 1, 2, ... in their order."""
    lines = members.read(_MARKER, PUBLISHED).decode("ascii", "replace").split("\n")
    pairs = [line.split() for line in lines if line.strip()]
    if [pair[0] for pair in pairs] != [str(k + 1) for k in range(len(pairs))] or any(
        len(pair) != 2 for pair in pairs
    ):
        raise DataError(f"{members.where}: {_MARKER} must have a line '1 NAME', '2 NAME', ... for each activity")
    return tuple(pair[1] for pair in pairs)


def _whole(members: Members, name: str) -> Int32[np.ndarray, "rows"]:
    where = f"{members.where}: {name}"
    values = read_numbers(members.read(name, PUBLISHED), where, 1)[:, 0]
    if len(bad := np.flatnonzero(values != np.round(values))):
        raise DataError(f"{where} must hold whole numbers, row {bad[0] + 1} is {values[bad[0]]:g}")
    return values.astype(np.int32)


def _same_rows(members: Members, name: str, rows: int, other: str, expected: int) -> None:
    if rows != expected:
        raise DataError(
            f"{members.where}: {name} has {rows} rows but {other} has {expected}; the files do not belong together"
        )


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
