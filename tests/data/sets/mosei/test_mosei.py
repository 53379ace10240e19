import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SPLITS, audit, load, mosei, mosi
from tests.data.conftest import total_sizes
from tests.data.mosei_data import VIDEOS, features, write_labels, write_mosei
from tests.data.mosi_data import FEATURES, mosi_arrays, write_mosi
from tests.data.mosi_data import VIDEOS as MOSI_VIDEOS

TOTAL = sum(count for videos in VIDEOS.values() for count in videos.values())


@pytest.fixture(scope="module", params=["mult", "starts", "mmsa"])
def small(request, tmp_path_factory):
    root = tmp_path_factory.mktemp(request.param)
    return write_labels(write_mosei(root, request.param, packed=request.param == "starts"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return write_labels(write_mosei(tmp_path_factory.mktemp("plain")))


def rows_of(data, split):
    """The utterances of a split by their place in the file, from 0."""
    part = data.modalities.part(data.split(split).x, data.modalities.names[0])
    return np.round(part.reshape(len(part), -1, part.shape[-1])[:, 0, 0]).astype(int) - 1


def together(key):
    """What the file holds under a key, of all parts."""
    return np.concatenate([np.asarray(part[key]) for part in features().values()])


def test_the_packed_parts_are_those_of_the_file(small):
    data = mosei(small, times="series", normalisation="none")
    assert data.modalities.names == ("text", "audio", "video")
    assert data.modalities.shapes == ((5, 6), (5, 4), (5, 3))
    for split in SPLITS:
        rows = rows_of(data, split)
        for name, key in (("text", "text"), ("audio", "audio"), ("video", "vision")):
            part = data.modalities.part(data.split(split).x, name)
            np.testing.assert_array_equal(part, together(key)[rows].astype(np.float32))
        negative = together("labels")[rows].ravel() < 0
        np.testing.assert_array_equal(data.split(split).y, np.where(negative, 0, 1))
    assert sum(len(rows_of(data, split)) for split in SPLITS) == TOTAL - 1


def test_a_client_is_a_video(small):
    data = mosei(small)
    assert data.clients == ("-3g5yACwYnA", "held_1", "new$2", "new_1", "v[0]x")
    assert total_sizes(data).tolist() == [9, 4, 5, 7, 6]
    assert any("lonely" in note for note in data.notes)
    assert f"incomplete: {TOTAL} utterances of more than 22,800" in " ".join(data.notes)
    assert audit(data).clean


def test_the_mean_over_times_leaves_padding_out(tmp_path):
    content = features()
    for part in content.values():
        for key in ("text", "audio", "vision"):
            part[key][:, :2] = 0  # the first two of five times
    data = mosei(write_mosei(tmp_path, content=content), normalisation="none")
    assert data.feature_shape == (6 + 4 + 3 + 3,)
    whole = np.concatenate([part["vision"] for part in content.values()])
    for split in SPLITS:
        expected = whole[rows_of(data, split)][:, 2:].mean(axis=1)
        np.testing.assert_allclose(data.modalities.part(data.split(split).x, "video"), expected, atol=1e-6)


def test_labels_of_the_features_file(plain):
    sentiment = together("labels").ravel()
    for labels, expected, classes in (
        ("two", (sentiment >= 0).astype(int), ("negative", "not negative")),
        ("three", np.sign(sentiment).astype(int) + 1, ("negative", "neutral", "positive")),
        ("value", sentiment.astype(np.float32), ()),
    ):
        data = mosei(plain, labels=labels, normalisation="none")
        assert data.classes == classes
        for split in SPLITS:
            np.testing.assert_array_equal(data.split(split).y, expected[rows_of(data, split)])
    assert data.task == "regression"


def test_labels_of_the_label_file(small):
    """Whatever the names of the utterances: grades away from zero, emotions as written for the test."""
    sentiment = together("labels").ravel()
    data = mosei(small, labels="seven", normalisation="none")
    assert data.classes == ("-3", "-2", "-1", "0", "+1", "+2", "+3")
    numbers = np.array([int(str(name[0]).rsplit("[", 1)[1][:-1]) for name in together("id")])
    videos = np.array([str(name[0]).rsplit("[", 1)[0] for name in together("id")])
    emotions = mosei(small, labels="emotion", normalisation="none")
    assert emotions.classes[0] == "happy"
    for split in SPLITS:
        rows = rows_of(data, split)
        grades = np.sign(sentiment[rows]) * np.ceil(np.abs(sentiment[rows]))
        np.testing.assert_array_equal(data.split(split).y, grades + 3)
        rows = rows_of(emotions, split)
        expected = [(numbers[row] + len(videos[row])) % 6 for row in rows]
        np.testing.assert_array_equal(emotions.split(split).y, expected)


def test_the_published_split(plain):
    data = mosei(plain, split="published", normalisation="none")
    assert data.clients == ("-3g5yACwYnA", "lonely", "v[0]x")
    assert sorted(rows_of(data, "train").tolist()) == list(range(16))
    assert sorted(rows_of(data, "validation").tolist()) == list(range(16, 20))
    assert sorted(rows_of(data, "test").tolist()) == list(range(20, 32))
    assert mosei(plain, split="published", new=True).clients == ("new$2", "new_1")


def test_what_is_all_zero_is_absent(tmp_path):
    content = features()
    content["train"]["text"][2] = 0
    content["test"]["text"][:3] = 0
    for key in ("text", "audio", "vision"):
        content["valid"][key][1] = 0
    data = mosei(write_mosei(tmp_path, content=content), ["audio", "text"], normalisation="zscore-train")
    assert total_sizes(data).sum() == TOTAL - 2
    present = np.concatenate([data.modalities.present(data.split(split).x, "text") for split in SPLITS])
    assert (present == 0).sum() == 4
    gone = np.concatenate([data.modalities.part(data.split(split).x, "text") for split in SPLITS])[present == 0]
    np.testing.assert_array_equal(gone, 0)
    notes = " ".join(data.notes)
    assert "text is absent in 5 utterances" in notes
    assert "1 utterances have none of the modalities and are left out" in notes
    fitted = data.modalities.part(data.train.x, "text")[data.modalities.present(data.train.x, "text") == 1]
    np.testing.assert_allclose(fitted.mean(axis=0), 0, atol=1e-5)  # what is absent is not fitted on


def test_minus_infinity_of_the_audio_is_no_voice(tmp_path):
    content = features()
    content["train"]["audio"][4, :2, 3] = -np.inf
    data = mosei(write_mosei(tmp_path, content=content), times="series", normalisation="none")
    assert any("2 audio features are minus infinity" in note for note in data.notes)
    content["train"]["audio"][4, :2, 3] = 0
    again = mosei(write_mosei(tmp_path, content=content), times="series", normalisation="none")
    assert data.fingerprint == again.fingerprint


def test_is_made_again_from_its_arguments(plain, monkeypatch):
    monkeypatch.setenv("IDIOLECT_DATA", str(plain))
    for options in (
        {},
        {"modalities": ["text", "video"], "labels": "emotion", "times": "series", "normalisation": "window"},
        {"labels": "value", "split": "published", "missing": 0.4, "missing_by": "sample"},
    ):
        data = load({"name": "mosei", **options})
        assert load({"name": "mosei", **data.provenance["arguments"]}).fingerprint == data.fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "six"}, "unknown labels 'six'"),
        ({"times": "means"}, "did you mean 'mean'"),
        ({"modalities": "vision"}, "unknown modality 'vision'"),
        ({"split": "official"}, "unknown split 'official'"),
        ({"missing": -0.1}, "missing must be at least 0"),
        ({"normalisation": "window"}, "needs signals"),
    ],
)
def test_refuses_settings(plain, options, message):
    with pytest.raises(ConfigError, match=message):
        mosei(plain, **options)


def test_the_label_file_is_asked_for_only_where_it_is_needed(tmp_path):
    write_mosei(tmp_path)
    mosei(tmp_path)
    with pytest.raises(DataError, match=r"missing file .*CMU_MOSEI_Labels\.csv; .*published with https://.*s3prl"):
        mosei(tmp_path, labels="emotion")
    (tmp_path / "mosei" / "mosei_senti_data.pkl").unlink()
    with pytest.raises(DataError, match=r"neither mosei_senti_data\.pkl nor aligned_50\.pkl .*; .*published at http"):
        mosei(tmp_path)


def test_what_the_label_file_means_by_happy_is_told(plain):
    assert any("where no emotion was annotated" in note for note in mosei(plain, labels="emotion").notes)
    assert not any("emotion" in note for note in mosei(plain, labels="seven").notes)


@pytest.fixture(scope="module")
def small_mosi(tmp_path_factory):
    return write_mosi(tmp_path_factory.mktemp("mosi"))


def rows_of_mosi(data, split, client=None):
    """The utterances of a split by their row in the files, training part first."""
    x = data.split(split).x if client is None else data.split(split).client(client)[0]
    return data.modalities.part(x, "text")[:, 0].astype(int)


def test_the_packed_parts_are_those_of_the_file_mosi(small_mosi):
    data = mosi(small_mosi, normalisation="none")
    assert data.clients == ("aa_1", "b-c", "ddd", "new_one", "new_two")
    assert data.feature_shape == (100 + 73 + 100 + 3,)
    assert data.classes == ("negative", "positive")
    arrays = mosi_arrays()
    both = {key: np.concatenate([arrays[f"train_{key}"], arrays[f"test_{key}"]]) for key in (*FEATURES, "label")}
    names = np.concatenate([arrays["train_utterance"], arrays["test_utterance"]])
    for split in SPLITS:
        rows = rows_of_mosi(data, split)
        for modality in FEATURES:
            np.testing.assert_array_equal(data.modalities.part(data.split(split).x, modality), both[modality][rows])
        np.testing.assert_array_equal(data.split(split).y, both["label"][rows])
        owners = np.array(data.clients)[data.split(split).owners]
        assert [name.rsplit("_", 1)[0] for name in names[rows]] == owners.tolist()
    everyone = np.concatenate([rows_of_mosi(data, split) for split in SPLITS])
    assert len(set(everyone.tolist())) == len(everyone) == 12 + 5 + 8 + 9 + 7


def test_small_videos_are_dropped_and_named(small_mosi):
    assert any(
        "1 of 6 clients have fewer than minimum=2" in note and "single" in note for note in mosi(small_mosi).notes
    )
    less = mosi(small_mosi, minimum=8)
    assert less.clients == ("aa_1", "ddd", "new_one")


def test_any_of_the_modalities_in_any_order(small_mosi):
    whole, part = mosi(small_mosi, normalisation="none"), mosi(small_mosi, ["video", "text"], normalisation="none")
    assert part.modalities.names == ("video", "text")
    for name in ("video", "text"):
        np.testing.assert_array_equal(
            part.modalities.part(part.test.x, name), whole.modalities.part(whole.test.x, name)
        )
    assert mosi(small_mosi, "audio").feature_shape == (74,)


def test_features_are_scaled_by_training_utterances(small_mosi):
    data = mosi(small_mosi)
    for name in FEATURES:
        part = data.modalities.part(data.train.x, name)
        np.testing.assert_allclose(part.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(part.std(axis=0), 1, atol=1e-5)
    assert audit(data).fitted_on == "train"
    assert audit(data).clean


def test_the_published_split_tests_other_videos(small_mosi):
    data = mosi(small_mosi, split="published", normalisation="none")
    assert data.clients == ("aa_1", "b-c", "ddd", "single")
    train = sum(MOSI_VIDEOS["train"].values())
    used = np.concatenate([rows_of_mosi(data, "train"), rows_of_mosi(data, "validation")])
    assert sorted(used.tolist()) == list(range(train))
    assert sorted(rows_of_mosi(data, "test").tolist()) == list(range(train, train + 16))
    assert data.test.sizes.tolist() == [4, 4, 4, 4]
    assert "2 videos take no part in training: new_one, new_two" in data.notes[0]
    assert audit(data).clean


def test_the_new_videos_as_clients(small_mosi):
    new = mosi(small_mosi, split="published", normalisation="none", new=True)
    assert new.clients == ("new_one", "new_two")
    assert total_sizes(new).tolist() == [9, 7]
    known = mosi(small_mosi, split="published", normalisation="none")
    trained = set(rows_of_mosi(known, "train").tolist()) | set(rows_of_mosi(known, "validation").tolist())
    assert not trained & {row for split in SPLITS for row in rows_of_mosi(new, split).tolist()}
    # What scales them is fitted on the training utterances of the others.
    scaled = mosi(small_mosi, split="published", new=True)
    fitted = known.modalities.part(known.train.x, "audio").astype(float)
    expected = (new.modalities.part(new.test.x, "audio") - fitted.mean(0)) / fitted.std(0)
    np.testing.assert_allclose(scaled.modalities.part(scaled.test.x, "audio"), expected, atol=1e-4)


def test_is_made_again_from_its_arguments_mosi(small_mosi, monkeypatch):
    monkeypatch.setenv("IDIOLECT_DATA", str(small_mosi))
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
