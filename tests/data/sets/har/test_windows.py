"""The files of UCI HAR as windows: which row is whose, which windows overlap, and what does not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SPLITS
from idiolect.data.sets.har.windows import (
    CHANNELS,
    Division,
    Windows,
    channels_of,
    divided,
    notes_on,
    people,
    read_windows,
)
from tests.data.har_data import BOUTS, NAMES, ROWS, write_har


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_har(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without signals, and the first 265 features only."""
    return write_har(tmp_path_factory.mktemp("bare"), columns=265, signals=False)


def test_the_training_files_come_first_and_labels_count_from_0(small: Path) -> None:
    found = read_windows(small, None)
    assert found.kind == "561"
    assert found.x.shape == (3 * ROWS, 561)
    assert (found.x.dtype, found.y.dtype) == (np.float32, np.int32)
    assert found.classes == tuple(NAMES)
    assert found.subjects.tolist() == [1] * ROWS + [3] * ROWS + [12] * ROWS
    assert found.held.tolist() == [False] * (2 * ROWS) + [True] * ROWS
    activities = np.repeat([activity - 1 for activity, _ in BOUTS], [length for _, length in BOUTS])
    np.testing.assert_array_equal(found.y, np.tile(activities, 3))
    assert (np.diff(found.x[:, 0]) > 0).all()  # the moments, in the order of time


def test_signals_have_a_channel_each(small: Path) -> None:
    found = read_windows(small, "signals", CHANNELS[::-2])
    assert found.x.shape == (3 * ROWS, 128, 5)
    start = found.x[:, :1, :1] % 1_000_000
    moments = start + np.arange(128)[None, :, None] + 1_000_000 * np.arange(8, -1, -2)
    np.testing.assert_allclose(found.x, moments, rtol=1e-6)


def test_the_first_features_are_those_of_the_whole_file_or_of_the_reduced_one(small: Path, bare: Path) -> None:
    np.testing.assert_array_equal(read_windows(small, "265").x, read_windows(small, "561").x[:, :265])
    found = read_windows(bare, None)
    assert (found.kind, found.x.shape) == ("265", (3 * ROWS, 265))
    with pytest.raises(DataError, match=r"has only the first 265 of the 561 features; use features=265, or 'UCI HAR"):
        read_windows(bare, "561")
    with pytest.raises(DataError, match=r"no file 'train/Inertial Signals/body_acc_x_train\.txt'"):
        read_windows(bare, "signals")


def first_of_bouts() -> np.ndarray:
    """Whether a window is the first of its bout: no window before it shares its samples."""
    starts = np.cumsum([0, *(length for _, length in BOUTS)])[:-1]
    return np.tile(np.isin(np.arange(ROWS), starts), 3)


def test_windows_overlap_within_a_bout(small: Path, bare: Path) -> None:
    seen = read_windows(small, "561")
    assert seen.measured
    np.testing.assert_array_equal(seen.overlaps, ~first_of_bouts())
    guessed = read_windows(bare, None)
    assert not guessed.measured
    # Two bouts of one activity, one after the other, cannot be told apart without the signals.
    alike = np.tile(np.concatenate([[False], np.diff(seen.y[:ROWS]) == 0]), 3)
    np.testing.assert_array_equal(guessed.overlaps, alike)
    assert (guessed.overlaps & ~seen.overlaps).sum() == 3


def test_an_overlap_is_seen_but_for_the_last_printed_digit(small: Path, tmp_path: Path) -> None:
    copy = write_har(tmp_path)
    file = copy / "har/UCI HAR Dataset/test/Inertial Signals/body_acc_x_test.txt"
    table = np.loadtxt(file)
    table[1, :64] *= 1 + 5e-6
    table[2, 10] += 2
    np.savetxt(file, table)
    found, whole = (read_windows(folder, "561").overlaps for folder in (copy, small))
    changed = np.flatnonzero(found != whole)
    assert changed.tolist() == [2 * ROWS + 2]


def test_channels_by_name() -> None:
    assert channels_of(["total_acc", "body_gyro_y"]) == ("total_acc_x", "total_acc_y", "total_acc_z", "body_gyro_y")
    assert channels_of(["body_acc", "body_gyro", "total_acc"]) == CHANNELS
    for bad, message in (
        (["body_ac"], "unknown signal 'body_ac'; did you mean 'body_acc'"),
        (["body_acc_x", "body_acc"], "signals names a channel twice: body_acc_x, body_acc_x"),
        ([], "at least one sensor"),
    ):
        with pytest.raises(ConfigError, match=message):
            channels_of(bad)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("test/y_test.txt", "0\n" * ROWS, r"y_test\.txt has the label 0 in row 1; activities are 1\.\.3"),
        ("train/y_train.txt", "1\n" * (2 * ROWS - 1) + "4\n", rf"the label 4 in row {2 * ROWS}; activities"),
        ("train/subject_train.txt", "1\n" * 3, r"subject_train\.txt has 3 rows but y_train\.txt has 92"),
        ("train/y_train.txt", "1\n2.5\n" * ROWS, "must hold whole numbers, row 2 is 2.5"),
        ("activity_labels.txt", "1 A\n3 B\n", "must have a line '1 NAME', '2 NAME'"),
        ("activity_labels.txt", "1 A\n2 B C\n", "must have a line"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, name: str, content: str, message: str) -> None:
    (write_har(tmp_path) / "har/UCI HAR Dataset" / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_windows(tmp_path, "561")


PEOPLE, BOUT = (2, 5, 6, 11), 20  # two activities each, half-overlapping windows of a bout; the last two are held out


def windows() -> Windows:
    """Window k of the pool has the single feature k."""
    count = len(PEOPLE) * 2 * BOUT
    return Windows(
        x=np.arange(count, dtype=np.float32)[:, None],
        y=np.tile(np.repeat([0, 1], BOUT), len(PEOPLE)).astype(np.int32),
        subjects=np.repeat(PEOPLE, 2 * BOUT).astype(np.int32),
        held=np.repeat([False, False, True, True], 2 * BOUT),
        overlaps=np.arange(count) % BOUT > 0,
        measured=True,
        classes=("walk", "sit"),
        kind="signals",
    )


def division(split: str, **changes: Any) -> Division:
    plain = {"new": False, "held_out": None, "test": 0.25, "validation": 0.2, "split_seed": 0}
    return Division(split, **{**plain, "downsample": None, "downsample_test": None, **changes})


def test_people_and_their_windows() -> None:
    found = people(windows(), windows().held)
    assert list(found) == ["subject 06", "subject 11"]
    np.testing.assert_array_equal(found["subject 06"], np.arange(80, 120))


@pytest.mark.parametrize("validation", [0.0, 0.2])
def test_held_out_people_are_tested_and_the_others_train_on_all_they_have(validation: float) -> None:
    found = divided(windows(), division("subjects", validation=validation))
    assert found.partition.clients == ("subject 02", "subject 05")
    np.testing.assert_array_equal(np.sort(found.partition.test.index), np.arange(80, 160))
    used = [found.partition.rows(split).index for split in ("train", "validation")]
    # One training window of each activity overlaps the first validation window, and is left out.
    assert len(np.concatenate(used)) == 80 - (4 if validation else 0)
    assert not np.isin(used[0] + 1, used[1]).any()
    assert len(used[1]) == 80 * validation
    np.testing.assert_array_equal(found.fitted, used[0])
    assert notes_on(windows(), found) == ["incomplete: 160 windows of 10,299"]


def test_new_people_are_divided_as_they_would_be_among_all() -> None:
    new = divided(windows(), division("subjects", new=True))
    everyone = divided(windows(), division("blocked"))
    assert new.partition.clients == ("subject 06", "subject 11")
    for split in SPLITS:
        for own, client in ((0, 2), (1, 3)):
            expected = everyone.partition.rows(split).client(client)
            np.testing.assert_array_equal(new.partition.rows(split).client(own), expected)
    np.testing.assert_array_equal(new.fitted, divided(windows(), division("subjects")).partition.train.index)


def test_down_sampling_cuts_the_training_people_and_what_is_fitted() -> None:
    whole, less = (divided(windows(), division("subjects", downsample=keep)) for keep in (None, 0.5))
    assert sorted(less.partition.train.sizes / whole.partition.train.sizes) == [0.5, 1]
    np.testing.assert_array_equal(less.fitted, less.partition.train.index)
    new = divided(windows(), division("subjects", downsample=0.5, new=True))
    np.testing.assert_array_equal(new.fitted, less.fitted)
    untouched = divided(windows(), division("subjects", new=True))
    assert new.partition.fingerprint == untouched.partition.fingerprint


def test_only_a_random_split_leaks() -> None:
    leaks = {split: divided(windows(), division(split)).leaks for split in ("blocked", "random", "subjects")}
    assert [len(leaks[split]) for split in ("blocked", "random", "subjects")] == [0, 1, 0]
    assert any("share samples with" in note for note in notes_on(windows(), divided(windows(), division("random"))))


def test_choices_that_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match="new goes with split='subjects', not 'random'"):
        division("random", new=True)
    with pytest.raises(ConfigError, match="held_out goes with split='subjects', not 'blocked'"):
        division("blocked", held_out=[2])
    with pytest.raises(ConfigError, match="did you mean 'subjects'"):
        division("subject")
    assert division("subjects", held_out=(2,)).arguments["held_out"] == [2]
