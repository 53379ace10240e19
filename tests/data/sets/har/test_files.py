"""The files of UCI HAR as windows: which row is whose, which windows overlap, and what does not fit."""

from pathlib import Path

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data.sets.har.files import CHANNELS, channels_of, read_windows
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
