import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SPLITS, audit, load, mosei
from tests.data.conftest import total_sizes
from tests.data.mosei_data import VIDEOS, features, write_labels, write_mosei

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
