import gzip
import json
import sys

import numpy as np
import pytest
from scipy.io import savemat

from idiolect.core.errors import DataError
from idiolect.data import audit, load, vehicle
from tests.data.conftest import total_sizes

RNG = np.random.default_rng(0)
SIZES = (30, 7, 12)
FEATURES = [RNG.normal(size=(n, 4)) for n in SIZES]
LABELS = [np.where(RNG.random(n) < 0.5, -1, 1) for n in SIZES]


def matlab(folder, shape=(-1, 1)):
    folder.mkdir(parents=True)
    x, y = (np.empty(len(SIZES), dtype=object) for _ in range(2))
    x[:], y[:] = FEATURES, [label[:, None] for label in LABELS]
    savemat(folder / "vehicle.mat", {"X": x.reshape(shape), "Y": y.reshape(shape)})
    return folder.parent


def leaf(path, rows=slice(None), users=("f_00000", "f_00001", "f_00002")):
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "users": list(users),
        "num_samples": [len(y[rows]) for y, _ in zip(LABELS, users, strict=True)],
        "user_data": {
            user: {"x": x[rows].tolist(), "y": y[rows].tolist()}
            for user, x, y in zip(users, FEATURES, LABELS, strict=True)
        },
    }
    content = json.dumps(document).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def test_matlab_file(tmp_path):
    data = vehicle(matlab(tmp_path / "vehicle"))
    assert data.clients == ("sensor 01", "sensor 02", "sensor 03")
    assert data.classes == ("-1", "+1")
    assert data.feature_shape == (4,)
    assert total_sizes(data).tolist() == list(SIZES)
    assert data.test.sizes.min() >= 1
    positives = [
        sum(int(data.split(split).client(i)[1].sum()) for split in ("train", "validation", "test")) for i in range(3)
    ]
    assert positives == [int((labels > 0).sum()) for labels in LABELS]
    assert audit(data).fitted_on == "unknown"
    assert any("a reduced set: 49 samples of 3 sensors, 7 to 30 each" in note for note in data.notes)
    assert data.fingerprint == vehicle(matlab(tmp_path / "wide" / "vehicle", (1, -1))).fingerprint


@pytest.mark.parametrize("name", ["mytrain.json", "mytrain.json.gz", "train/mytrain.json", "train/mytrain.json.gz"])
def test_leaf_file(tmp_path, name):
    leaf(tmp_path / "vehicle" / name)
    data = vehicle(tmp_path)
    assert data.clients == ("f_00000", "f_00001", "f_00002")
    assert total_sizes(data).tolist() == list(SIZES)
    assert "only mytrain.json" in data.notes[0]
    assert audit(data).fitted_on == "all"  # the publisher's z-scores


def test_both_leaf_files_are_merged(tmp_path):
    leaf(tmp_path / "vehicle" / "mytrain.json", slice(0, 5))
    leaf(tmp_path / "vehicle" / "mytest.json", slice(5, None))
    data = vehicle(tmp_path)
    assert "mytrain.json and mytest.json are merged" in data.notes[0]
    assert total_sizes(data).tolist() == list(SIZES)
    leaf(tmp_path / "whole" / "vehicle" / "mytrain.json")
    np.testing.assert_array_equal(data.train.x, vehicle(tmp_path / "whole").train.x)


def test_the_matlab_file_wins(tmp_path):
    matlab(tmp_path / "vehicle")
    leaf(tmp_path / "vehicle" / "mytrain.json")
    assert vehicle(tmp_path).provenance["file"] == "vehicle.mat"


def test_a_complete_set_has_no_note_about_size(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["idiolect.data.sets.vehicle"], "COMPLETE", 40)
    assert not any("reduced" in note for note in vehicle(matlab(tmp_path / "vehicle")).notes)


def test_made_again_from_its_arguments(tmp_path, monkeypatch):
    monkeypatch.setenv("IDIOLECT_DATA", str(matlab(tmp_path / "vehicle")))
    data = load({"name": "vehicle", "downsample": 0.2, "normalisation": "zscore-train", "split_seed": 3})
    assert load({"name": "vehicle", **data.provenance["arguments"]}).fingerprint == data.fingerprint


def test_refuses(tmp_path):
    with pytest.raises(
        DataError, match=r"there is no folder .*vehicle; mytrain\.json and mytest\.json are published"
    ):
        vehicle(tmp_path)
    (tmp_path / "vehicle").mkdir()
    with pytest.raises(DataError, match=r"has neither vehicle\.mat nor mytrain\.json .*published"):
        vehicle(tmp_path)
    leaf(tmp_path / "vehicle" / "mytrain.json", slice(0, 5))
    leaf(tmp_path / "vehicle" / "mytest.json", slice(5, None), users=("f_00000", "f_00001", "other"))
    with pytest.raises(DataError, match="user 'f_00002' is in only one of"):
        vehicle(tmp_path)
    (tmp_path / "vehicle" / "mytest.json").write_text(
        json.dumps(
            {
                "users": ["f_00000", "f_00001", "f_00002"],
                "num_samples": [1, 1, 1],
                "user_data": {f"f_0000{i}": {"x": [[1.0]], "y": [1]} for i in range(3)},
            }
        )
    )
    with pytest.raises(DataError, match=r"mytrain\.json has 4 features, .*mytest\.json has 1"):
        vehicle(tmp_path)


@pytest.fixture(scope="module")
def real(real_data):
    if not (real_data / "vehicle").is_dir():
        pytest.skip("needs the vehicle sensor files in vehicle/")
    return real_data


def test_real_files(real):
    data = vehicle(real)
    assert data.num_clients == 23
    assert data.feature_shape == (100,)
    assert data.test.sizes.min() >= 1
    assert total_sizes(data).sum() >= 1860
