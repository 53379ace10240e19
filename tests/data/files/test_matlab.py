import warnings

import numpy as np
import pytest
from scipy.io import savemat

from idiolect.core.errors import DataError
from idiolect.data.files.matlab import read_tasks, task_of

RNG = np.random.default_rng(0)
SIZES = (5, 3, 4)


def cells(values, column=False):
    """A MATLAB cell array: {1 x n}, or {n x 1}."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array[:, None] if column else array[None, :]


FEATURES = [RNG.normal(size=(n, 2)) for n in SIZES]
LABELS = [np.arange(n) % 2 * 2.0 - 1 for n in SIZES]


def save(path, x="X", y="Y", features=FEATURES, labels=LABELS, column=False, wide=False, compressed=False):
    shaped = [label[None, :] if wide else label[:, None] for label in map(np.asarray, labels)]
    variables = {"note": "made by hand", x: cells(features, column), y: cells(shaped, column)}
    savemat(path, variables, do_compression=compressed)
    return path


@pytest.mark.parametrize("keys", [("X", "Y"), ("feature", "label")])
@pytest.mark.parametrize("column", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_reads_every_published_form(tmp_path, keys, column, wide):
    tasks = read_tasks(save(tmp_path / "a.mat", *keys, column=column, wide=wide))
    assert len(tasks) == 3
    for (x, y), features, labels in zip(tasks, FEATURES, LABELS, strict=True):
        np.testing.assert_array_equal(x, features.astype(np.float32))
        np.testing.assert_array_equal(y, labels)


def test_whole_numbers_of_few_bits(tmp_path):
    features, labels = [np.array([[1, 255], [0, 7]], np.uint8)], [np.array([3, 70], np.int16)]
    ((x, y),) = read_tasks(save(tmp_path / "a.mat", features=features, labels=labels))
    assert x.tolist() == [[1, 255], [0, 7]]
    assert y.tolist() == [3, 70]
    assert (x.dtype, y.dtype) == (np.float32, np.float64)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": "Z"}, r"a\.mat has no variables 'X' and 'Y' or 'feature' and 'label'; it has note, Z, Y"),
        ({"features": FEATURES[:2]}, "'X' has 2 cells, 'Y' has 3"),
        ({"features": [*FEATURES[:2], FEATURES[2][:3]]}, r"task 3: 3 feature rows but labels of shape \(4, 1\)"),
        ({"features": [*FEATURES[:2], FEATURES[2][:, :1]]}, "task 3 has 1 features, task 1 has 2"),
        ({"features": [*FEATURES[:2], np.full((4, 2), np.nan)]}, "task 3: features hold NaN or infinity"),
        ({"labels": [*LABELS[:2], np.array([1, 1, 1, np.inf])]}, "task 3: labels hold NaN or infinity"),
        ({"features": [*FEATURES[:2], "text"]}, "task 3: features must be numbers"),
        ({"features": [*FEATURES[:2], np.zeros((0, 2))], "labels": [*LABELS[:2], np.zeros(0)]}, "must be a table"),
    ],
)
def test_refuses(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        read_tasks(save(tmp_path / "a.mat", **changes))


def test_refuses_variables_that_are_not_cells(tmp_path):
    savemat(tmp_path / "a.mat", {"X": FEATURES[0], "Y": LABELS[0]})
    with pytest.raises(DataError, match="'X' must be a cell array with one cell a task"):
        read_tasks(tmp_path / "a.mat")
    savemat(tmp_path / "b.mat", {"X": np.empty((1, 0), object), "Y": np.empty((1, 0), object)})
    with pytest.raises(DataError, match="no cells, so there are no tasks"):
        read_tasks(tmp_path / "b.mat")


def test_refuses_rows_of_unequal_length():
    with pytest.raises(DataError, match="here: rows of unequal length"):
        task_of([[1, 2], [3]], [1, 2], "here")


@pytest.mark.parametrize("compressed", [False, True])
def test_a_truncated_file_gives_one_clear_error(tmp_path, compressed):
    path = save(tmp_path / "a.mat", compressed=compressed)
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        refused(path)


def test_a_damaged_file_gives_one_clear_error(tmp_path):
    """MATLAB compresses what it writes, with a checksum; scipy reads damaged files without one as it can."""
    path = save(tmp_path / "a.mat", compressed=True)
    whole = path.read_bytes()
    for place in range(140, len(whole), 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        refused(path)


def test_other_files(tmp_path):
    for content in (b"not matlab", b"MATLAB 7.3 MAT-file" + bytes(105) + b"\x00\x02IM" + bytes(500)):
        (tmp_path / "a.mat").write_bytes(content)
        refused(tmp_path / "a.mat")


def refused(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DataError, match=r"a\.mat") as error:
            read_tasks(path)
    assert "\n" not in str(error.value)


def test_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"none\.mat cannot be read"):
        read_tasks(tmp_path / "none.mat")
