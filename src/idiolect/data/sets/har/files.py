"""Read and check the published files of Human Activity Recognition Using Smartphones (UCI HAR)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32, Int32

from idiolect.core.errors import DataError, require, unknown
from idiolect.data.files.archive import Members, find_members, read_numbers
from idiolect.data.files.folder import data_folder

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
    held: whether the window is of the official test files, whose people are not in the training files.
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
