import gzip
import json

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data.files.leaf import read_leaf

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
        (changed(users=["a", "a"]), "each user must stand once"),
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
def test_refuses(tmp_path, document, message):
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
