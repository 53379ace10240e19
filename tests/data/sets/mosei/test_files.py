import os
import pickle

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.sets.mosei.files import Name, matched, read_features, read_labels
from tests.data.mosei_data import VIDEOS, features, write_labels, write_mosei

TRAIN = sum(VIDEOS["train"].values())


class Runs:
    """Would make a folder when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def read(root, *, series=False):
    return read_features(root / "mosei", series=series)


def test_both_files_give_the_same_utterances(tmp_path):
    found = {form: read(write_mosei(tmp_path / form, form)) for form in ("mult", "starts", "mmsa")}
    for form in ("starts", "mmsa"):
        np.testing.assert_array_equal(found[form].sentiment, found["mult"].sentiment)
        assert [name.video for name in found[form].names] == [name.video for name in found["mult"].names]
        for key, values in found["mult"].values.items():
            np.testing.assert_array_equal(found[form].values[key], values)
    assert found["mult"].part.tolist() == ["train"] * 16 + ["validation"] * 4 + ["test"] * 12
    names = found["mult"].names[0], found["starts"].names[0], found["mmsa"].names[0]
    assert (names[0].number is None, names[1].start is None, names[2].clip is None) == (False, False, False)
    assert f"of video {names[0].video}" in str(names[0])


def test_names_as_bytes_and_in_an_array_of_texts(tmp_path):
    content = features()
    for part in content.values():
        part["id"] = np.array([[str(field).encode() for field in name] for name in part["id"].tolist()])
    assert read(write_mosei(tmp_path, content=content)).names == read(write_mosei(tmp_path / "b")).names


def _set(part, key, value):
    def change(content):
        content[part][key] = value(content[part][key])

    return change


def _drop(part, key=None):
    def change(content):
        if key is None:
            del content[part]
        else:
            del content[part][key]

    return change


def _nan(values):
    values = values.copy()
    values[3, 1, 2] = np.nan
    return values


def _minus_infinity(values):
    return np.where(np.arange(len(values))[:, None, None] == 5, -np.inf, values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_drop("valid"), r"has no dictionary 'valid'; .*published at http"),
        (_drop("test", "vision"), r"test has no 'vision'; .*published at http"),
        (_drop("test", "labels"), "test has neither 'labels' nor 'regression_labels'"),
        (_set("train", "text", _nan), r"train, text has NaN or infinity in row 4 \(1 in all\)"),
        (_set("train", "audio", _nan), r"train, audio has NaN or infinity in row 4"),
        (_set("train", "vision", _minus_infinity), r"train, vision has NaN or infinity in row 6"),
        (_set("train", "labels", lambda v: v + 4), "train, labels: row 1 is .*; sentiment is -3 to 3"),
        (_set("train", "labels", lambda v: v * np.nan), "train, labels: row 1 is nan"),
        (_set("train", "labels", lambda v: v.astype(str)), "there must be a number for each utterance"),
        (
            _set("valid", "text", lambda v: v[:-1]),
            r"valid, text must hold numbers of the shape \(4, times, features\)",
        ),
        (_set("valid", "text", lambda v: v[:, 0]), r"it is float32 \(4, 6\)"),
        (_set("valid", "audio", lambda v: v.tolist()), "valid, audio must hold numbers .*, it is list"),
        (_set("valid", "audio", lambda v: v[:, :, :2]), "audio differs in shape between the parts"),
        (_set("train", "id", lambda v: v[:-1]), f"train, id must hold a name for each of {TRAIN} utterances"),
        (_set("test", "id", lambda v: ["noname"] * len(v)), "'noname' is no utterance's name"),
    ],
)
def test_refuses_broken_files(tmp_path, change, message):
    content = features()
    change(content)
    with pytest.raises(DataError, match=message) as error:
        read(write_mosei(tmp_path, content=content))
    assert "\n" not in str(error.value)


def test_series_of_different_lengths_are_not_the_aligned_file(tmp_path):
    content = features()
    for part in content.values():
        part["audio"] = part["audio"].repeat(3, axis=1)
    with pytest.raises(DataError, match=r"the modalities differ in length, \[5, 15\]: it is not the aligned file"):
        read(write_mosei(tmp_path, content=content), series=True)


def test_code_in_the_file_is_refused_and_not_run(tmp_path):
    content = features() | {"more": [Runs(tmp_path / "made")]}
    with pytest.raises(DataError, match=r"refused: it asks for (posix|nt)\.mkdir"):
        read(write_mosei(tmp_path, content=content))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps(features(), 4)[:5000], pickle.dumps([1])])
def test_other_bytes_are_refused(tmp_path, content):
    root = write_mosei(tmp_path)
    (root / "mosei" / "mosei_senti_data.pkl").write_bytes(content)
    with pytest.raises(DataError, match=r"damaged or not a pickle|not a dictionary") as error:
        read(root)
    assert "\n" not in str(error.value)


@pytest.fixture(params=["mult", "starts", "mmsa"])
def files(request, tmp_path):
    """The features with utterances named in one of the three ways, and the label file."""
    root = write_labels(write_mosei(tmp_path, request.param))
    return root, read_features(root / "mosei", series=False)


def rows(root, found, names=None, sentiment=None):
    table = read_labels(root / "mosei")
    names = found.names if names is None else names
    return table, matched(table, names, found.sentiment if sentiment is None else sentiment, "f.pkl")


def test_each_utterance_finds_its_row(files):
    table, found = rows(*files)
    assert sorted(found.tolist()) == list(range(len(table)))
    own = table.iloc[found]
    assert own["file"].tolist() == [name.video for name in files[1].names]
    grade = np.sign(files[1].sentiment) * np.ceil(np.abs(files[1].sentiment))
    np.testing.assert_array_equal(own["label7"], grade)
    if files[1].names[0].number is not None:
        assert own["index"].tolist() == [name.number for name in files[1].names]


def test_what_is_not_in_the_label_file_has_no_row(files):
    root, features = files
    text = (root / "mosei" / "CMU_MOSEI_Labels.csv").read_text()
    kept = [line for line in text.splitlines() if ",new_1,3," not in line and ",lonely," not in line]
    (root / "mosei" / "CMU_MOSEI_Labels.csv").write_text("\n".join(kept) + "\n")
    _, found = rows(root, features)
    lost = [name for name, row in zip(features.names, found, strict=True) if row < 0]
    # Clips have no number of their own: where one is missing, none of the video's can be told.
    clips = features.names[0].clip is not None
    assert sorted(name.video for name in lost) == ["lonely"] + ["new_1"] * (VIDEOS["test"]["new_1"] if clips else 1)


def test_a_start_far_from_every_row_has_none(tmp_path):
    root = write_labels(write_mosei(tmp_path, "starts"))
    names = [Name("new_1", start=20.4), Name("new_1", start=20.6), Name("nobody", start=0.0)]
    table = read_labels(root / "mosei")
    row = table[(table["file"] == "new_1") & (table["index"] == 2)]
    sentiment = np.full(3, np.sign(row["label7"].iloc[0]) * 0.999 * abs(row["label7"].iloc[0]), np.float32)
    assert matched(table, names, sentiment, "f.pkl").tolist() == [row.index[0], -1, -1]


@pytest.mark.parametrize("shift", [1.0, -1.0])
def test_files_that_disagree_about_sentiment_are_refused(files, shift):
    root, found = files
    with pytest.raises(DataError, match=r"f\.pkl: the sentiment of utterance .* is .*, but CMU_MOSEI_Labels\.csv"):
        rows(root, found, sentiment=np.clip(found.sentiment + shift, -3, 3))
    with pytest.raises(DataError, match=r"the files do not belong together") as error:
        rows(root, found, sentiment=-found.sentiment)
    assert "\n" not in str(error.value)


def test_a_grade_of_the_right_sign_is_refused_too(files):
    root, found = files
    assert found.sentiment.max() == 3
    with pytest.raises(DataError, match=r"is 1, but CMU_MOSEI_Labels\.csv grades it \+3"):
        rows(root, found, sentiment=np.where(found.sentiment == 3, np.float32(1), found.sentiment))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label7": "grade"}, "has no column 'label7'; .*published with"),
        ({"-3g5yACwYnA,0,0.0": "-3g5yACwYnA,0,soon"}, "column 'start' has an entry that is no number"),
        ({"-3g5yACwYnA,0,": "-3g5yACwYnA,0.5,"}, "column 'index' has an entry that is no number"),
        ({"-3g5yACwYnA,0,": "-3g5yACwYnA,1,"}, "video -3g5yACwYnA has the index 1 twice"),
        ({"1,-3g5yACwYnA": "1,2,3,4,5,-3g5yACwYnA"}, "is not a table|has an entry|has the index"),
    ],
)
def test_refuses_broken_files_labels(tmp_path, change, message):
    root = write_mosei(tmp_path)
    write_labels(root, change)
    with pytest.raises(DataError, match=message) as error:
        read_labels(root / "mosei")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [("label6", 6, r"label6 of held_1 is 6, not 0\.\.5"), ("label7", 4, r"label7 of held_1 is 4, not -3\.\.3")],
)
def test_refuses_labels_that_do_not_exist(tmp_path, column, value, message):
    path = write_labels(write_mosei(tmp_path)) / "mosei" / "CMU_MOSEI_Labels.csv"
    table = pd.read_csv(path, index_col=0)
    table.loc[table["file"] == "held_1", column] = value
    table.to_csv(path)
    with pytest.raises(DataError, match=message):
        read_labels(path.parent)


def test_the_real_label_file(real_set):
    table = read_labels(real_set("mosei") / "mosei")
    assert len(table) == 23_259
    assert table["file"].nunique() == 3_293
    # Segments in the order of their clips' names as texts: 10, 13, 2, 3, 4, 9.
    assert table[table["file"] == "-3g5yACwYnA"]["start"].tolist() == [82.753, 119.919, 4.84, 13.211, 26.541, 74.083]
    numbers = [Name("-3g5yACwYnA", clip=clip) for clip in ("2", "10", "13", "3", "4", "9")]
    starts = [Name("-3g5yACwYnA", start=start) for start in (4.7645, 82.7645, 119.9, 13.2, 26.5, 74.1)]
    expected = [3, 1, 2, 4, 5, 6]
    grades = table["label7"].to_numpy()[expected].astype(np.float32)
    for names in (numbers, starts):
        assert matched(table, names, grades, "f.pkl").tolist() == expected
