import numpy as np
import pytest
from scipy.io import savemat

from idiolect.core.errors import DataError
from idiolect.data import landmine, load, school
from tests.data.conftest import total_sizes

RNG = np.random.default_rng(0)
SIZES = (12, 9)


def write(path, keys, labels):
    path.parent.mkdir(parents=True, exist_ok=True)
    x, y = (np.empty((1, len(SIZES)), dtype=object) for _ in range(2))
    for i, n in enumerate(SIZES):
        x[0, i], y[0, i] = RNG.integers(0, 50, (n, 3)).astype(np.uint8), np.resize(labels, n)[:, None]
    savemat(path, {keys[0]: x, keys[1]: y})
    return path.parent.parent


@pytest.mark.parametrize("folder", ["school", "mtl-small"])
def test_school_is_a_regression(tmp_path, folder):
    root = write(tmp_path / folder / "school.mat", ("X", "Y"), np.array([17, 5, 70], np.uint8))
    data = school(root)
    assert data.task == "regression"
    assert data.clients == ("school 001", "school 002")
    assert set(data.train.y.tolist()) <= {17.0, 5.0, 70.0}
    assert abs(data.train.x.mean()) < 1e-6
    assert "different pupils can have equal rows" in data.notes[0]


@pytest.mark.parametrize(
    ("name", "keys", "labels", "classes"),
    [
        ("LandmineData.mat", ("feature", "label"), [0, 0, 1], ("0", "1")),
        ("landmine.mat", ("X", "Y"), [0, 0, 1], ("0", "1")),
        ("landmine_small.mat", ("X", "Y"), [-1, -1, 1], ("-1", "+1")),
    ],
)
def test_landmine_in_each_published_form(tmp_path, name, keys, labels, classes):
    data = landmine(write(tmp_path / "landmine" / name, keys, labels))
    assert data.classes == classes
    assert data.clients == ("field 01", "field 02")
    assert total_sizes(data).tolist() == list(SIZES)
    assert f"{name}: 7 of 21 samples are of class {classes[1]}, none in 0 of 2 fields" in data.notes[0]
    assert "gives an accuracy of 66.7%" in data.notes[0]


def test_made_again_from_their_arguments(tmp_path, monkeypatch):
    write(tmp_path / "mtl-small" / "school.mat", ("X", "Y"), [3, 9])
    write(tmp_path / "mtl-small" / "landmine.mat", ("X", "Y"), [-1, 1])
    monkeypatch.setenv("IDIOLECT_DATA", str(tmp_path))
    for name in ("school", "landmine"):
        data = load({"name": name, "normalisation": "none", "split_seed": 2, "downsample": 0.5})
        assert data.provenance["source"] == name
        assert load({"name": name, **data.provenance["arguments"]}).fingerprint == data.fingerprint


def test_refuses(tmp_path):
    with pytest.raises(DataError, match=r"there is no folder .*school; school\.mat is published"):
        school(tmp_path)
    root = write(tmp_path / "landmine" / "landmine.mat", ("X", "Y"), [1, 2])
    with pytest.raises(DataError, match=r"landmine\.mat: field 01 has the label 2"):
        landmine(root)
    (tmp_path / "landmine" / "landmine.mat").unlink()
    with pytest.raises(DataError, match=r"has no LandmineData\.mat or landmine\.mat or .*published at"):
        landmine(root)


@pytest.fixture(scope="module")
def real(real_data):
    if not (real_data / "mtl-small").is_dir():
        pytest.skip("needs school.mat and landmine_small.mat in mtl-small/")
    return real_data


def test_real_files(real):
    pupils, fields = school(real), landmine(real)
    assert (pupils.num_clients, total_sizes(pupils).sum(), pupils.feature_shape) == (139, 15_362, (28,))
    assert 1 <= pupils.train.y.min() < pupils.train.y.max() <= 70
    assert (fields.num_clients, fields.feature_shape) == (29, (9,))
    assert "89 of 1,464 samples are of class +1" in fields.notes[0]
