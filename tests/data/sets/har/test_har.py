import hashlib
import shutil
import zipfile

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SPLITS, audit, har, har_modalities, load
from tests.data.conftest import total_sizes
from tests.data.har_data import BOUTS, NAMES, ROWS, SUBJECTS, write_har


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_har(tmp_path_factory.mktemp("full"))


@pytest.fixture(scope="module")
def reduced(tmp_path_factory):
    return write_har(tmp_path_factory.mktemp("reduced"), columns=265, signals=False)


def moments(data, split, client):
    """The moments at which each window of a client was taken, (windows, 128)."""
    return data.split(split).client(client)[0][:, :, 0].astype(int)


def leaked(data):
    """The percentage in the note about a random split."""
    (note,) = [note for note in data.notes if "test windows share" in note]
    return float(note.split("%")[0].split()[-1])


def test_one_client_a_person(small):
    data = har(small)
    assert data.clients == ("subject 01", "subject 03", "subject 12")
    assert data.classes == tuple(NAMES)
    assert data.feature_shape == (561,)
    assert (data.train.x.dtype, data.train.y.dtype) == (np.float32, np.int32)
    assert np.bincount(data.train.client(0)[1], minlength=3).tolist() == [9, 16, 4]
    assert f"{3 * ROWS} windows of 10,299" in " ".join(data.notes)


def test_features_belong_to_their_label_and_person(small):
    features, signals = har(small), har(small, signals="body_acc_x")
    for split in SPLITS:
        start = signals.split(split).x[:, 0, 0]
        np.testing.assert_allclose(features.split(split).x[:, 0], start / 1e5, atol=1e-7)
        np.testing.assert_array_equal(features.split(split).y, signals.split(split).y)
    expected = np.repeat([label - 1 for label, _ in BOUTS], [length for _, length in BOUTS])
    first = np.concatenate([features.split(split).client(0)[0][:, 0] for split in SPLITS])
    labels = np.concatenate([features.split(split).client(0)[1] for split in SPLITS])
    starts = np.cumsum([0] + [64 * (length + 1) for _, length in BOUTS])
    all_starts = np.concatenate([s + 64 * np.arange(n) for s, (_, n) in zip(starts, BOUTS, strict=False)])
    where = np.searchsorted(all_starts, np.round(first * 1e5).astype(int))
    np.testing.assert_array_equal(labels, expected[where])


@pytest.mark.parametrize("validation", [0.0, 0.1, 0.25])
def test_blocked_splits_share_no_sample(small, validation):
    data = har(small, "signals", split="blocked", validation=validation)
    for client in range(3):
        seen = [set(moments(data, split, client).ravel().tolist()) for split in SPLITS]
        assert not seen[0] & seen[2]
        assert not seen[1] & seen[2]
        assert not seen[0] & seen[1]
    assert audit(data).clean


def test_blocked_splits_follow_the_order_of_time(small):
    data = har(small, "signals", split="blocked", validation=0.25)
    for client in range(3):
        for activity in range(3):
            times = [
                moments(data, split, client)[data.split(split).client(client)[1] == activity, 0] for split in SPLITS
            ]
            assert times[0].max() < times[1].min()
            assert times[1].max() < times[2].min()


def test_the_note_counts_the_windows_left_out(small):
    data = har(small, split="blocked")
    left = 3 * ROWS - total_sizes(data).sum()
    assert f"; {left} windows that overlap a later split are left out" in data.notes[0]
    assert 0 < left <= 3 * 3 * 2


def test_without_signal_files_neighbours_of_one_activity_count_as_overlapping(small, reduced):
    data = har(reduced)
    assert "no signal files" in data.notes[0]
    # A cut falls between two bouts of SITTING: only the signals show that no window overlaps it.
    assert data.train.sizes.tolist() == [28] * 3
    assert har(small).train.sizes.tolist() == [29] * 3


def test_a_random_split_says_how_much_leaks(small):
    data = har(small, "signals", split="random")
    shared, tests = 0, 0
    for client in range(3):
        trained = set(moments(data, "train", client).ravel().tolist())
        rows = moments(data, "test", client)
        shared += sum(bool(trained & set(row.tolist())) for row in rows)
        tests += len(rows)
    assert f"{shared / tests:.1%} of the test windows" in data.notes[0]
    assert shared > tests / 2
    assert total_sizes(data).tolist() == [ROWS] * 3
    assert any("split at random" in line for line in audit(data).lines())
    assert data.fingerprint != har(small, "signals", split="random", split_seed=1).fingerprint


def test_the_leak_is_that_of_the_down_sampled_split(small):
    whole, less = (har(small, split="random", downsample=keep) for keep in (None, 0.1))
    assert leaked(less) < leaked(whole)


def test_the_first_265_of_561_features(small, reduced):
    whole, part = har(small, "561"), har(small, 265)
    np.testing.assert_array_equal(whole.train.x[:, :265], part.train.x)
    data = har(reduced)
    assert data.feature_shape == (265,)
    assert data.provenance["arguments"]["features"] == "265"
    assert any("first 265 of the 561" in note for note in data.notes)
    with pytest.raises(DataError, match="only the first 265 of the 561 features; use features=265"):
        har(reduced, "561")


def test_signals_by_sensor_and_channel(small):
    everything = har(small, "signals")
    assert everything.feature_shape == (128, 9)
    two = har(small, signals=["total_acc", "body_gyro_y"])
    assert two.feature_shape == (128, 4)
    assert two.provenance["arguments"]["signals"] == ["total_acc_x", "total_acc_y", "total_acc_z", "body_gyro_y"]
    np.testing.assert_array_equal(two.train.x, everything.train.x[:, :, [6, 7, 8, 4]])
    for bad, message in (
        ({"signals": "total_ac"}, "did you mean 'total_acc'"),
        ({"signals": ["body_acc", "body_acc_x"]}, "names a channel twice"),
        ({"signals": []}, "at least one"),
        ({"signals": "body_acc", "features": "561"}, "goes with features='signals'"),
        ({"features": "560"}, "unknown features '560'"),
        ({"split": "official"}, "unknown split 'official'; known: blocked, random"),
        ({"normalisation": "zscore"}, "did you mean 'zscore-train'"),
        ({"test": 0.0}, "test fraction"),
    ):
        with pytest.raises(ConfigError, match=message):
            har(small, **bad)


def test_channels_are_standardised_on_training_windows(small):
    data = har(small, signals=["body_acc_x", "total_acc_z"], normalisation="zscore-train")
    np.testing.assert_allclose(data.train.x.mean(axis=(0, 1)), 0, atol=1e-4)
    np.testing.assert_allclose(data.train.x.std(axis=(0, 1)), 1, atol=1e-4)
    assert abs(data.test.x.mean()) > 1e-2
    assert audit(data).fitted_on == "train"
    assert audit(har(small)).fitted_on == "all"  # the publisher scaled the features over all windows


def test_down_sampling(small):
    whole, less = har(small), har(small, downsample=0.2)
    assert (less.train.sizes < whole.train.sizes).sum() == 1
    np.testing.assert_array_equal(less.test.x, whole.test.x)
    assert har(small, downsample=0.2, downsample_test=0.4).test.sizes.sum() < whole.test.sizes.sum()


def test_reads_the_zip_and_is_made_again_from_its_arguments(small, tmp_path, monkeypatch):
    (tmp_path / "har").mkdir()
    shutil.make_archive(str(tmp_path / "har" / "UCI HAR Dataset"), "zip", small / "har")
    assert har(tmp_path).fingerprint == har(small).fingerprint
    monkeypatch.setenv("IDIOLECT_DATA", str(small))
    for options in ({}, {"signals": "body_gyro", "split": "random", "downsample": 0.3}):
        data = load({"name": "har", **options})
        assert load({"name": "har", **data.provenance["arguments"]}).fingerprint == data.fingerprint


def _replace(name, old, new):
    def change(top):
        path = top / name
        content = path.read_text()
        assert old in content
        path.write_text(content.replace(old, new, 1))

    return change


def _cut(name):
    def change(top):
        path = top / name
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda top: (top / "test/X_test.txt").unlink(), r"no file 'test/X_test\.txt'; 'UCI HAR.*published at"),
        (lambda top: (top / "train/subject_train.txt").unlink(), r"no file 'train/subject_train\.txt'"),
        (lambda top: (top / "activity_labels.txt").unlink(), r"neither a \.zip nor a folder with 'activity_labels"),
        (_cut("train/X_train.txt"), r"X_train\.txt has 91 rows but y_train\.txt has 92; .* belong together"),
        (_cut("test/y_test.txt"), r"subject_test\.txt has 46 rows but y_test\.txt has 45"),
        (_cut("train/Inertial Signals/body_acc_x_train.txt"), r"body_acc_x_train\.txt has 91 rows"),
        (_replace("train/y_train.txt", "2", "4"), r"y_train\.txt has the label 4 in row 10; activities are 1\.\.3"),
        (_replace("train/y_train.txt", "1", "one"), r"y_train\.txt is not a table of numbers"),
        (_replace("train/subject_train.txt", "1", "1.5"), "must hold whole numbers, row 1 is 1.5"),
        (_replace("train/X_train.txt", "e-01", "e-0z1"), "is not a table of numbers"),
        (_replace("activity_labels.txt", "2 SITTING", "3 SITTING"), "must have a line '1 NAME'"),
    ],
)
def test_refuses_broken_files(small, tmp_path, change, message):
    shutil.copytree(small, tmp_path / "copy")
    top = tmp_path / "copy" / "har" / "UCI HAR Dataset"
    change(top)
    with pytest.raises(DataError, match=message) as error:
        har(tmp_path / "copy")
    assert "\n" not in str(error.value)


def test_refuses_a_broken_zip(small, tmp_path):
    (tmp_path / "har").mkdir()
    path = tmp_path / "har" / "UCI HAR Dataset.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in (small / "har").rglob("*.txt"):
            archive.write(file, file.relative_to(small / "har").as_posix())
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3])
    with pytest.raises(DataError, match=r"UCI HAR Dataset\.zip is truncated"):
        har(tmp_path)
    with pytest.raises(DataError, match=r"there is no folder .*har; 'UCI HAR Dataset\.zip' is published at"):
        har(tmp_path / "none")


@pytest.fixture(scope="module")
def real(real_data):
    if not (real_data / "har").is_dir():
        pytest.skip("needs the UCI HAR files in har/")
    return real_data


@pytest.mark.second
def test_real_files_blocked(real):
    """All samples of three channels, by the hash of half windows: no half of a test window is in training."""
    data = har(real, signals="body_acc", split="blocked")
    assert data.num_clients == 30
    assert data.classes[0] == "WALKING"
    assert len(data.notes) == 1
    dropped = 10_299 - total_sizes(data).sum()
    assert f"{dropped} windows" in data.notes[0]
    assert dropped < 30 * 6 * 2

    def halves(split):
        x = data.split(split).x
        rows = np.ascontiguousarray(x.reshape(2 * len(x), 64, 3))
        return {hashlib.blake2b(row.data, digest_size=8).digest() for row in rows}

    train, validation, test = (halves(split) for split in SPLITS)
    assert not train & test
    assert not validation & test
    assert not train & validation
    assert len(train) < 2 * data.train.sizes.sum() * 0.6  # inside a split the halves do repeat


@pytest.mark.second
def test_real_files_random(real):
    data = har(real, split="random", validation=0.0)
    assert total_sizes(data).sum() == 10_299
    assert data.feature_shape in ((561,), (265,))
    assert np.abs(data.train.x).max() <= 1
    assert 85 < leaked(data) < 93


def test_the_features_of_people_who_are_held_out(small):
    known, new = (har(small, split="subjects", new=new) for new in (False, True))
    assert (known.clients, new.clients) == (("subject 01", "subject 03"), ("subject 12",))
    trained = {row.tobytes() for split in ("train", "validation") for row in known.split(split).x}
    assert not trained & {row.tobytes() for split in SPLITS for row in new.split(split).x}
    assert known.test.sizes.sum() == ROWS


@pytest.fixture(scope="module")
def small_modalities(tmp_path_factory):
    return write_har(tmp_path_factory.mktemp("signals"), columns=None)


def moments_modalities(data, split, name="body_acc"):
    """The moments at which the windows of a split were taken, by the signal of the first axis, (windows, 128)."""
    return data.modalities.part(data.split(split).x, name)[:, :, 0].astype(int)


def all_moments(data, *splits):
    return set(np.concatenate([moments_modalities(data, split) for split in splits]).ravel().tolist())


@pytest.mark.parametrize("split", ["blocked", "random", "subjects"])
def test_the_packed_parts_are_the_windows_of_the_files(small_modalities, split):
    names = ["body_gyro", "total_acc"]
    data = har_modalities(small_modalities, names, split=split, normalisation="none")
    flat = har(small_modalities, signals=names, split=split)
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


def test_each_window_by_itself(small_modalities):
    data = har_modalities(small_modalities, normalisation="window")
    for split in SPLITS:
        for name in data.modalities.names:
            part = data.modalities.part(data.split(split).x, name)
            np.testing.assert_allclose(part.mean(axis=1), 0, atol=1e-6)
            np.testing.assert_allclose(part.std(axis=1), 1, atol=1e-5)
    assert audit(data).fitted_on == "nothing"


def test_each_channel_by_all_training_windows(small_modalities):
    data = har_modalities(small_modalities, normalisation="zscore-train", split="subjects")
    raw = har_modalities(small_modalities, normalisation="none", split="subjects")
    for name in data.modalities.names:
        fitted = raw.modalities.part(raw.train.x, name).astype(float)
        for split in SPLITS:
            part = raw.modalities.part(raw.split(split).x, name)
            expected = (part - fitted.mean(axis=(0, 1))) / fitted.std(axis=(0, 1))
            found = data.modalities.part(data.split(split).x, name)
            # The values of the files are near 3e6, single precision.
            np.testing.assert_allclose(found, expected, atol=1e-3)
    assert audit(data).fitted_on == "train"


def test_people_who_are_held_out_are_only_tested(small_modalities):
    data = har_modalities(small_modalities, split="subjects", normalisation="none", validation=0.2)
    assert data.clients == tuple(f"subject {person:02d}" for person in SUBJECTS["train"])
    assert not all_moments(data, "train", "validation") & all_moments(data, "test")
    tests = [tuple(row) for row in moments_modalities(data, "test").tolist()]
    assert len(tests) == len(set(tests)) == ROWS  # all of the one held-out person's windows, each once
    assert np.ptp(data.test.sizes) <= 1
    assert "subject 12" in data.notes[0]
    assert not all_moments(data, "train") & all_moments(data, "validation")
    assert audit(data).clean


def test_no_window_is_left_out_where_nothing_is_cut(small_modalities):
    data = har_modalities(small_modalities, split="subjects", validation=0.0)
    assert data.train.sizes.tolist() == [ROWS, ROWS]
    assert data.test.sizes.tolist() == [ROWS // 2] * 2
    assert not any("left out" in note for note in data.notes)


def test_new_people_as_clients(small_modalities):
    known = har_modalities(small_modalities, split="subjects", normalisation="none")
    new = har_modalities(small_modalities, split="subjects", normalisation="none", new=True)
    assert new.clients == ("subject 12",)
    assert not all_moments(new, *SPLITS) & all_moments(known, "train", "validation")
    assert all_moments(new, *SPLITS) <= all_moments(known, "test")
    assert not all_moments(new, "train") & all_moments(new, "test")
    blocked = har_modalities(small_modalities, split="blocked", normalisation="none")
    for split in SPLITS:  # divided as they are where all people train
        np.testing.assert_array_equal(new.split(split).x, blocked.split(split).client(2)[0])
    # What was fitted is what the others' training saw, to the bit.
    scaled = har_modalities(small_modalities, split="subjects", new=True)
    assert not np.allclose(scaled.train.x, har_modalities(small_modalities, split="blocked").train.client(2)[0])
    fitted = known.modalities.part(known.train.x, "body_gyro").astype(float)
    raw = new.modalities.part(new.test.x, "body_gyro")
    expected = (raw - fitted.mean(axis=(0, 1))) / fitted.std(axis=(0, 1))
    np.testing.assert_allclose(new.modalities.part(scaled.test.x, "body_gyro"), expected, atol=1e-3)


def test_who_is_held_out(small_modalities):
    data = har_modalities(small_modalities, split="subjects", held_out=[3])
    assert data.clients == ("subject 01", "subject 12")
    assert har_modalities(small_modalities, split="subjects", held_out=[3], new=True).clients == ("subject 03",)
    default = har_modalities(small_modalities, split="subjects")
    assert har_modalities(small_modalities, split="subjects", held_out=[12]).fingerprint == default.fingerprint


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
def test_refuses_settings(small_modalities, options, message):
    with pytest.raises(ConfigError, match=message) as error:
        har_modalities(small_modalities, **options)
    assert "\n" not in str(error.value)


def test_refuses_a_person_who_is_not_there(small_modalities):
    with pytest.raises(DataError, match="subject 2, who has no windows"):
        har_modalities(small_modalities, split="subjects", held_out=[1, 2])


def test_is_made_again_from_its_arguments(small_modalities, monkeypatch):
    monkeypatch.setenv("IDIOLECT_DATA", str(small_modalities))
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


def test_people_merged_into_fewer_clients_keep_their_windows_and_splits(small_modalities):
    whole, few = (har_modalities(small_modalities, clients=n) for n in (None, 2))
    half = whole.num_clients // 2
    assert few.clients[1] == f"{whole.clients[half]} to {whole.clients[-1]}"
    for name in SPLITS:
        for client, part in enumerate((range(half), range(half, whole.num_clients))):
            x, y = (np.concatenate([whole.split(name).client(i)[k] for i in part]) for k in (0, 1))
            np.testing.assert_array_equal(few.split(name).client(client)[0], x)
            np.testing.assert_array_equal(few.split(name).client(client)[1], y)
    with pytest.raises(ConfigError, match="clients = 99 must lie between 1 and"):
        har_modalities(small_modalities, clients=99)
