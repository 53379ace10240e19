import gzip
import json
import warnings

import numpy as np
import pytest
from scipy.io import savemat

from idiolect.core.errors import DataError
from idiolect.data.files.tasks import read_leaf, read_tasks, task_of

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
    with pytest.raises(DataError, match="'X' must be a cell array with one cell per task"):
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


DOCUMENT = {
    "users": ["b", "a"],
    "num_samples": [3, 2],
    "user_data": {"a": {"x": [[1, 2], [3, 4]], "y": [1, -1]}, "b": {"x": [[5, 6]] * 3, "y": [[-1], [1], [1]]}},
}


def changed(**entries):
    return {**json.loads(json.dumps(DOCUMENT)), **entries}


def data(**users):
    return changed(user_data={**DOCUMENT["user_data"], **users})


@pytest.mark.parametrize("name", ["train.json", "train.json.gz"])
def test_reads_users_in_the_order_of_the_file(tmp_path, name):
    content = json.dumps(DOCUMENT).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    tasks = read_leaf(tmp_path / name)
    assert list(tasks) == ["b", "a"]
    np.testing.assert_array_equal(tasks["a"][0], [[1, 2], [3, 4]])
    assert tasks["a"][1].tolist() == [1, -1]
    assert tasks["b"][1].tolist() == [-1, 1, 1]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({k: v for k, v in DOCUMENT.items() if k != "users"}, "no entry 'users'; a LEAF file has"),
        ({k: v for k, v in DOCUMENT.items() if k != "user_data"}, "no entry 'user_data'"),
        ([1, 2], "no entry 'users'"),
        (changed(users={}), "'users' must be a list"),
        (changed(users=[], num_samples=[]), "has no users"),
        (changed(users=["a"]), "1 users, 2 entries in num_samples"),
        (changed(users=["a", "a"]), "each user must be listed once"),
        (changed(users=["b", "c"]), "user 'c': no x and y in user_data"),
        (changed(num_samples=[3, 5]), "user 'a': num_samples says 5, there are 2"),
        (data(a={"x": [[1, 2], [3, 4]]}), "user 'a': no x and y"),
        (data(a={"x": [[1, 2], [3]], "y": [1, 1]}), "user 'a': rows of unequal length"),
        (data(a={"x": [[1, 2], [3, "k"]], "y": [1, 1]}), "user 'a': features must be numbers"),
        (data(a={"x": [[1, 2], [3, None]], "y": [1, 1]}), "user 'a': features must be numbers"),
        (data(a={"x": [[1, 2], [3, float("nan")]], "y": [1, 1]}), "user 'a': features hold NaN"),
        (data(a={"x": [[1, 2], [3, 4]], "y": [1]}), r"user 'a': 2 feature rows but labels of shape \(1,\)"),
        (data(a={"x": [[1, 2], [3, 4]], "y": [[0, 1], [1, 0]]}), r"labels of shape \(2, 2\)"),
        (data(a={"x": [[1, 2]] * 4, "y": [[0, 1], [1, 0]]}), r"4 feature rows but labels of shape \(2, 2\)"),
        (data(a={"x": [[1], [3]], "y": [1, 1]}), "user 'a' has 1 features, user 'b' has 2"),
    ],
)
def test_refuses_leaf(tmp_path, document, message):
    path = tmp_path / "train.json"
    path.write_text(json.dumps(document))
    with pytest.raises(DataError, match=message) as error:
        read_leaf(path)
    assert str(path) in str(error.value)


def test_refuses_damage(tmp_path):
    path = tmp_path / "train.json"
    path.write_text(json.dumps(DOCUMENT)[:-5])
    with pytest.raises(DataError, match=r"train\.json is not JSON"):
        read_leaf(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="is not JSON"):
        read_leaf(path)
    packed = tmp_path / "train.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(DOCUMENT).encode())[:-12])
    with pytest.raises(DataError, match=r"train\.json\.gz is truncated or damaged"):
        read_leaf(packed)
    packed.write_bytes(b"{}")
    with pytest.raises(DataError, match=r"train\.json\.gz is not a gzip file"):
        read_leaf(packed)
    with pytest.raises(DataError, match="cannot read"):
        read_leaf(tmp_path / "none.json")
