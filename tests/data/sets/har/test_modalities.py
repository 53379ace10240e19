import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SPLITS, audit, har, har_modalities, load
from tests.data.conftest import total_sizes
from tests.data.har_data import ROWS, SUBJECTS, write_har


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_har(tmp_path_factory.mktemp("signals"), columns=None)


def moments(data, split, name="body_acc"):
    """The moments at which the windows of a split were taken, by the signal of the first axis, (windows, 128)."""
    return data.modalities.part(data.split(split).x, name)[:, :, 0].astype(int)


def all_moments(data, *splits):
    return set(np.concatenate([moments(data, split) for split in splits]).ravel().tolist())


@pytest.mark.parametrize("split", ["blocked", "random", "subjects"])
def test_the_packed_parts_are_the_windows_of_the_files(small, split):
    names = ["body_gyro", "total_acc"]
    data = har_modalities(small, names, split=split, normalisation="none")
    flat = har(small, signals=names, split=split)
    assert data.modalities.names == tuple(names)
    assert data.modalities.shapes == ((128, 3), (128, 3))
    assert data.feature_shape == (2 * 384 + 2,)
    assert data.clients == flat.clients
    for part in SPLITS:
        x = data.split(part).x
        for number, name in enumerate(names):
            raw = flat.split(part).x[:, :, 3 * number : 3 * number + 3]
            np.testing.assert_array_equal(data.modalities.part(x, name), raw)
            np.testing.assert_array_equal(data.modalities.present(x, name), 1)
        np.testing.assert_array_equal(data.split(part).y, flat.split(part).y)
        np.testing.assert_array_equal(data.split(part).offsets, flat.split(part).offsets)
    # The files hold the moment of each sample, a million more for each channel: gyroscope 3, 4, 5, total 6, 7, 8.
    first = data.modalities.part(data.train.x, "body_gyro")[:, :, 2] - 5e6
    np.testing.assert_array_equal(first, data.modalities.part(data.train.x, "total_acc")[:, :, 0] - 6e6)


def test_each_window_by_itself(small):
    data = har_modalities(small, normalisation="window")
    for split in SPLITS:
        for name in data.modalities.names:
            part = data.modalities.part(data.split(split).x, name)
            np.testing.assert_allclose(part.mean(axis=1), 0, atol=1e-6)
            np.testing.assert_allclose(part.std(axis=1), 1, atol=1e-5)
    assert audit(data).fitted_on == "nothing"


def test_each_channel_by_all_training_windows(small):
    data = har_modalities(small, normalisation="zscore-train", split="subjects")
    raw = har_modalities(small, normalisation="none", split="subjects")
    for name in data.modalities.names:
        fitted = raw.modalities.part(raw.train.x, name).astype(float)
        for split in SPLITS:
            part = raw.modalities.part(raw.split(split).x, name)
            expected = (part - fitted.mean(axis=(0, 1))) / fitted.std(axis=(0, 1))
            found = data.modalities.part(data.split(split).x, name)
            # The values of the files are near 3e6, single precision.
            np.testing.assert_allclose(found, expected, atol=1e-3)
    assert audit(data).fitted_on == "train"


def test_people_who_are_held_out_are_only_tested(small):
    data = har_modalities(small, split="subjects", normalisation="none", validation=0.2)
    assert data.clients == tuple(f"subject {person:02d}" for person in SUBJECTS["train"])
    assert not all_moments(data, "train", "validation") & all_moments(data, "test")
    tests = [tuple(row) for row in moments(data, "test").tolist()]
    assert len(tests) == len(set(tests)) == ROWS  # all of the one held-out person's windows, each once
    assert np.ptp(data.test.sizes) <= 1
    assert "subject 12" in data.notes[0]
    assert not all_moments(data, "train") & all_moments(data, "validation")
    assert audit(data).clean


def test_no_window_is_left_out_where_nothing_is_cut(small):
    data = har_modalities(small, split="subjects", validation=0.0)
    assert data.train.sizes.tolist() == [ROWS, ROWS]
    assert data.test.sizes.tolist() == [ROWS // 2] * 2
    assert not any("left out" in note for note in data.notes)


def test_new_people_as_clients(small):
    known = har_modalities(small, split="subjects", normalisation="none")
    new = har_modalities(small, split="subjects", normalisation="none", new=True)
    assert new.clients == ("subject 12",)
    assert not all_moments(new, *SPLITS) & all_moments(known, "train", "validation")
    assert all_moments(new, *SPLITS) <= all_moments(known, "test")
    assert not all_moments(new, "train") & all_moments(new, "test")
    blocked = har_modalities(small, split="blocked", normalisation="none")
    for split in SPLITS:  # divided as they are where all people train
        np.testing.assert_array_equal(new.split(split).x, blocked.split(split).client(2)[0])
    # What was fitted is what the others' training saw, to the bit.
    scaled = har_modalities(small, split="subjects", new=True)
    assert not np.allclose(scaled.train.x, har_modalities(small, split="blocked").train.client(2)[0])
    fitted = known.modalities.part(known.train.x, "body_gyro").astype(float)
    raw = new.modalities.part(new.test.x, "body_gyro")
    expected = (raw - fitted.mean(axis=(0, 1))) / fitted.std(axis=(0, 1))
    np.testing.assert_allclose(new.modalities.part(scaled.test.x, "body_gyro"), expected, atol=1e-3)


def test_who_is_held_out(small):
    data = har_modalities(small, split="subjects", held_out=[3])
    assert data.clients == ("subject 01", "subject 12")
    assert har_modalities(small, split="subjects", held_out=[3], new=True).clients == ("subject 03",)
    default = har_modalities(small, split="subjects")
    assert har_modalities(small, split="subjects", held_out=[12]).fingerprint == default.fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modalities": ["body_acc", "video"]}, "unknown modality 'video'; known: body_acc, body_gyro, total_acc"),
        ({"modalities": "body_acc_x"}, "did you mean 'body_acc'"),
        ({"modalities": []}, "at least one name"),
        ({"modalities": ["body_acc", "body_acc"]}, "share a name"),
        ({"split": "people"}, "unknown split 'people'"),
        ({"normalisation": "windows"}, "did you mean 'window'"),
        ({"new": True}, "new goes with split='subjects', not 'blocked'"),
        ({"held_out": [12], "split": "random"}, "held_out goes with split='subjects', not 'random'"),
        ({"held_out": [], "split": "subjects"}, "held_out must name one person at least"),
        ({"held_out": [1, 3, 12], "split": "subjects"}, "leave one for training"),
        ({"test": 1.0}, "test fraction"),
    ],
)
def test_refuses_settings(small, options, message):
    with pytest.raises(ConfigError, match=message) as error:
        har_modalities(small, **options)
    assert "\n" not in str(error.value)


def test_refuses_a_person_who_is_not_there(small):
    with pytest.raises(DataError, match="subject 2, who has no windows"):
        har_modalities(small, split="subjects", held_out=[1, 2])


def test_is_made_again_from_its_arguments(small, monkeypatch):
    monkeypatch.setenv("IDIOLECT_DATA", str(small))
    for options in (
        {},
        {"modalities": "total_acc", "split": "random", "split_seed": 3, "normalisation": "window"},
        {"split": "subjects", "held_out": [1], "downsample": 0.5},
        {"split": "subjects", "new": True},
    ):
        data = load({"name": "har-modalities", **options})
        assert load({"name": "har-modalities", **data.provenance["arguments"]}).fingerprint == data.fingerprint


def test_without_signal_files(tmp_path):
    write_har(tmp_path, signals=False)
    with pytest.raises(DataError, match=r"no file 'train/Inertial Signals/body_acc_x_train\.txt'; .*published at"):
        har_modalities(tmp_path)


def test_real_files(real_set):
    data = har_modalities(real_set("har"), split="subjects", normalisation="window", validation=0.0)
    assert data.num_clients == 21
    assert (data.train.sizes.sum(), data.test.sizes.sum()) == (7352, 2947)
    assert data.classes[0] == "WALKING"
    assert len(data.notes) == 1
    assert "subject 24" in data.notes[0]
    part = data.modalities.part(data.test.x, "body_gyro")
    np.testing.assert_allclose(part.mean(axis=1), 0, atol=1e-5)
    assert total_sizes(data).sum() == 10_299
    assert audit(data).clean


def test_people_merged_into_fewer_clients_keep_their_windows_and_splits(small):
    whole, few = (har_modalities(small, clients=n) for n in (None, 2))
    half = whole.num_clients // 2
    assert few.clients[1] == f"{whole.clients[half]} to {whole.clients[-1]}"
    for name in SPLITS:
        for client, part in enumerate((range(half), range(half, whole.num_clients))):
            x, y = (np.concatenate([whole.split(name).client(i)[k] for i in part]) for k in (0, 1))
            np.testing.assert_array_equal(few.split(name).client(client)[0], x)
            np.testing.assert_array_equal(few.split(name).client(client)[1], y)
    with pytest.raises(ConfigError, match="clients = 99 must lie between 1 and"):
        har_modalities(small, clients=99)
