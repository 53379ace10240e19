import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data import SPLITS, audit, load, mosi
from tests.data.conftest import total_sizes
from tests.data.mosi_data import FEATURES, VIDEOS, mosi_arrays, write_mosi


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_mosi(tmp_path_factory.mktemp("mosi"))


def rows_of(data, split, client=None):
    """The utterances of a split by their row in the files, training part first."""
    x = data.split(split).x if client is None else data.split(split).client(client)[0]
    return data.modalities.part(x, "text")[:, 0].astype(int)


def test_the_packed_parts_are_those_of_the_file(small):
    data = mosi(small, normalisation="none")
    assert data.clients == ("aa_1", "b-c", "ddd", "new_one", "new_two")
    assert data.feature_shape == (100 + 73 + 100 + 3,)
    assert data.classes == ("negative", "positive")
    arrays = mosi_arrays()
    both = {key: np.concatenate([arrays[f"train_{key}"], arrays[f"test_{key}"]]) for key in (*FEATURES, "label")}
    names = np.concatenate([arrays["train_utterance"], arrays["test_utterance"]])
    for split in SPLITS:
        rows = rows_of(data, split)
        for modality in FEATURES:
            np.testing.assert_array_equal(data.modalities.part(data.split(split).x, modality), both[modality][rows])
        np.testing.assert_array_equal(data.split(split).y, both["label"][rows])
        owners = np.array(data.clients)[data.split(split).owners]
        assert [name.rsplit("_", 1)[0] for name in names[rows]] == owners.tolist()
    everyone = np.concatenate([rows_of(data, split) for split in SPLITS])
    assert len(set(everyone.tolist())) == len(everyone) == 12 + 5 + 8 + 9 + 7


def test_small_videos_are_dropped_and_named(small):
    assert any("1 of 6 clients have fewer than minimum=2" in note and "single" in note for note in mosi(small).notes)
    less = mosi(small, minimum=8)
    assert less.clients == ("aa_1", "ddd", "new_one")


def test_any_of_the_modalities_in_any_order(small):
    whole, part = mosi(small, normalisation="none"), mosi(small, ["video", "text"], normalisation="none")
    assert part.modalities.names == ("video", "text")
    for name in ("video", "text"):
        np.testing.assert_array_equal(
            part.modalities.part(part.test.x, name), whole.modalities.part(whole.test.x, name)
        )
    assert mosi(small, "audio").feature_shape == (74,)


def test_features_are_scaled_by_training_utterances(small):
    data = mosi(small)
    for name in FEATURES:
        part = data.modalities.part(data.train.x, name)
        np.testing.assert_allclose(part.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(part.std(axis=0), 1, atol=1e-5)
    assert audit(data).fitted_on == "train"
    assert audit(data).clean


def test_the_published_split_tests_other_videos(small):
    data = mosi(small, split="published", normalisation="none")
    assert data.clients == ("aa_1", "b-c", "ddd", "single")
    train = sum(VIDEOS["train"].values())
    used = np.concatenate([rows_of(data, "train"), rows_of(data, "validation")])
    assert sorted(used.tolist()) == list(range(train))
    assert sorted(rows_of(data, "test").tolist()) == list(range(train, train + 16))
    assert data.test.sizes.tolist() == [4, 4, 4, 4]
    assert "2 videos take no part in training: new_one, new_two" in data.notes[0]
    assert audit(data).clean


def test_the_new_videos_as_clients(small):
    new = mosi(small, split="published", normalisation="none", new=True)
    assert new.clients == ("new_one", "new_two")
    assert total_sizes(new).tolist() == [9, 7]
    known = mosi(small, split="published", normalisation="none")
    trained = set(rows_of(known, "train").tolist()) | set(rows_of(known, "validation").tolist())
    assert not trained & {row for split in SPLITS for row in rows_of(new, split).tolist()}
    # What scales them is fitted on the training utterances of the others.
    scaled = mosi(small, split="published", new=True)
    fitted = known.modalities.part(known.train.x, "audio").astype(float)
    expected = (new.modalities.part(new.test.x, "audio") - fitted.mean(0)) / fitted.std(0)
    np.testing.assert_allclose(scaled.modalities.part(scaled.test.x, "audio"), expected, atol=1e-4)


def test_is_made_again_from_its_arguments(small, monkeypatch):
    monkeypatch.setenv("IDIOLECT_DATA", str(small))
    for options in (
        {},
        {"modalities": "text", "split": "published"},
        {"missing": 0.5, "split_seed": 1, "minimum": 6},
    ):
        data = load({"name": "mosi", **options})
        assert load({"name": "mosi", **data.provenance["arguments"]}).fingerprint == data.fingerprint


def _broken(key, value):
    def change(path):
        arrays = mosi_arrays()
        if value is None:
            del arrays[key]
        else:
            arrays[key] = value(arrays[key])
        write_mosi(path.parents[1], arrays)

    return change


def _nan(values):
    values = values.copy()
    values[3, 5] = np.nan
    return values


def _truncate(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.unlink(), r"missing file .*mosi_utterance_features\.npz; .*published with https://"),
        (_truncate, "is truncated, damaged or not an .npz"),
        (lambda path: path.write_bytes(b"no zip at all"), "is truncated, damaged or not an .npz"),
        (_broken("test_audio", None), "has no array 'test_audio'; .*published with"),
        (_broken("train_text", _nan), r"train_text has NaN or infinity in row 4 \(1 in all\)"),
        (_broken("train_text", lambda v: v[:, :99]), r"train_text must hold numbers of the shape \(26, 100\)"),
        (_broken("test_video", lambda v: v[:-1]), r"test_video must hold numbers of the shape \(16, 100\)"),
        (_broken("test_video", lambda v: v.astype(str)), "test_video must hold numbers"),
        (_broken("train_label", lambda v: v + 1), "train_label must hold a 0 or 1"),
        (_broken("train_utterance", lambda v: np.array([n.split("_")[-1] for n in v])), "a name VIDEO_NUMBER"),
        (_broken("train_utterance", lambda v: v.astype(object)), "not an .npz of plain arrays .*allow_pickle"),
        (
            _broken("test_utterance", lambda v: np.array(["ddd_99", *v[1:]])),
            "video 'ddd' is in the training and in the test part",
        ),
    ],
)
def test_refuses_broken_files(tmp_path, change, message):
    write_mosi(tmp_path)
    change(tmp_path / "mosi" / "mosi_utterance_features.npz")
    with pytest.raises(DataError, match=message) as error:
        mosi(tmp_path)
    assert "\n" not in str(error.value)


def test_says_where_the_folder_should_be(tmp_path):
    with pytest.raises(DataError, match=r"there is no folder .*mosi; .*declare-lab"):
        mosi(tmp_path)


def test_real_files(real_set):
    folder = real_set("mosi")
    data = mosi(folder)
    assert data.num_clients == 93
    assert total_sizes(data).sum() == 2199
    assert audit(data).clean
    published = mosi(folder, split="published")
    assert (published.num_clients, published.test.sizes.sum()) == (62, 752)
    assert np.bincount(published.test.y).tolist() == [285, 467]
    assert mosi(folder, split="published", new=True).num_clients == 31
