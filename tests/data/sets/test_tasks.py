import gzip
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import savemat

from idiolect.core.errors import DataError
from idiolect.data import audit, landmine, load, school, vehicle
from idiolect.data.sets.tasks import TaskOptions, binary, from_tasks
from tests.data.conftest import total_sizes

RNG = np.random.default_rng(0)
PLAIN = TaskOptions("none", None, 0.25, 0.1, 0, None, None)


def tasks(*sizes, labels=(-1, 1)):
    return {
        f"t{i}": (RNG.normal(i, 1 + i, (n, 3)).astype(np.float32), np.resize(np.array(labels, float), n))
        for i, n in enumerate(sizes)
    }


@pytest.mark.parametrize(("labels", "names"), [((-1, 1), ("-1", "+1")), ((0, 1), ("0", "1"))])
def test_binary_labels(labels, names):
    coded, classes = binary(tasks(4, 5, labels=labels), "file")
    assert classes == names
    assert coded["t1"][1].tolist() == [0, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ((-1, 1, 0), "file: t0 has the label 0; labels are -1 and 1, or 0 and 1"),
        ((0, 1, 2), "file: t0 has the label 2"),
        ((-1, 0.5), "file: t0 has the label 0.5"),
        ((1, 1), "all labels are 1; classification needs both"),
        ((-1, -1), "all labels are -1"),
    ],
)
def test_refuses_other_labels(labels, message):
    with pytest.raises(DataError, match=message):
        binary(tasks(6, labels=labels), "file")


def test_one_client_a_task():
    given = tasks(20, 7, 9)
    coded, classes = binary(given, "file")
    data = from_tasks(coded, PLAIN, source="s", file="f.mat", classes=classes)
    assert data.clients == ("t0", "t1", "t2")
    assert data.train.y.dtype == np.int32
    assert [part.sizes.tolist() for part in (data.train, data.validation, data.test)] == [
        [13, 4, 5],
        [2, 1, 1],
        [5, 2, 3],
    ]
    for i, name in enumerate(given):
        rows = np.concatenate([data.split(split).client(i)[0] for split in ("train", "validation", "test")])
        np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(given[name][0], axis=0))
    assert data.provenance["file"] == "f.mat"
    assert audit(data).fitted_on == "unknown"


def test_targets_stay_numbers():
    data = from_tasks(tasks(20, 30, labels=(1.5, 7.25, 3)), PLAIN, source="s", file="f")
    assert data.task == "regression"
    assert data.classes == ()
    assert set(data.train.y.tolist()) == {1.5, 7.25, 3.0}


def test_options_do_what_they_say():
    coded, classes = binary(tasks(40, 40, 3), "file")

    def made(**changes):
        return from_tasks(coded, replace(PLAIN, **changes), source="s", file="f", classes=classes)

    scaled = made(normalisation="zscore-train")
    np.testing.assert_allclose(scaled.train.x.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(scaled.train.x.std(axis=0), 1, atol=1e-5)
    assert audit(scaled).fitted_on == "train"
    assert made(minimum=4).clients == ("t0", "t1")
    assert "t2" in made(minimum=4).notes[0]
    assert made(downsample=0.2).train.sizes.sum() < made().train.sizes.sum()
    assert made(split_seed=1).fingerprint != made().fingerprint
    with pytest.raises(DataError, match=r"client 't2' has 3 samples.*minimum=4"):
        made(test=0.75, validation=0.0)


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


VEHICLE_SIZES = (30, 7, 12)
FEATURES = [RNG.normal(size=(n, 4)) for n in VEHICLE_SIZES]
LABELS = [np.where(RNG.random(n) < 0.5, -1, 1) for n in VEHICLE_SIZES]


def matlab(folder, shape=(-1, 1)):
    folder.mkdir(parents=True)
    x, y = (np.empty(len(VEHICLE_SIZES), dtype=object) for _ in range(2))
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
    assert total_sizes(data).tolist() == list(VEHICLE_SIZES)
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
    assert total_sizes(data).tolist() == list(VEHICLE_SIZES)
    assert "only mytrain.json" in data.notes[0]
    assert audit(data).fitted_on == "all"  # the publisher's z-scores


def test_both_leaf_files_are_merged(tmp_path):
    leaf(tmp_path / "vehicle" / "mytrain.json", slice(0, 5))
    leaf(tmp_path / "vehicle" / "mytest.json", slice(5, None))
    data = vehicle(tmp_path)
    assert "mytrain.json and mytest.json are merged" in data.notes[0]
    assert total_sizes(data).tolist() == list(VEHICLE_SIZES)
    leaf(tmp_path / "whole" / "vehicle" / "mytrain.json")
    np.testing.assert_array_equal(data.train.x, vehicle(tmp_path / "whole").train.x)


def test_the_matlab_file_wins(tmp_path):
    matlab(tmp_path / "vehicle")
    leaf(tmp_path / "vehicle" / "mytrain.json")
    assert vehicle(tmp_path).provenance["file"] == "vehicle.mat"


def test_a_complete_set_has_no_note_about_size(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["idiolect.data.sets.tasks"], "VEHICLE_COMPLETE", 40)
    assert not any("reduced" in note for note in vehicle(matlab(tmp_path / "vehicle")).notes)


def test_made_again_from_its_arguments(tmp_path, monkeypatch):
    monkeypatch.setenv("IDIOLECT_DATA", str(matlab(tmp_path / "vehicle")))
    data = load({"name": "vehicle", "downsample": 0.2, "normalisation": "zscore-train", "split_seed": 3})
    assert load({"name": "vehicle", **data.provenance["arguments"]}).fingerprint == data.fingerprint


def test_refuses_vehicle(tmp_path):
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
def real_vehicle(real_data):
    if not (real_data / "vehicle").is_dir():
        pytest.skip("needs the vehicle sensor files in vehicle/")
    return real_data


def test_real_files_vehicle(real_vehicle):
    data = vehicle(real_vehicle)
    assert data.num_clients == 23
    assert data.feature_shape == (100,)
    assert data.test.sizes.min() >= 1
    assert total_sizes(data).sum() >= 1860
