import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.sets.mosei.files import Name, read_features
from idiolect.data.sets.mosei.labels import matched, read_labels
from tests.data.mosei_data import VIDEOS, write_labels, write_mosei


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
def test_refuses_broken_files(tmp_path, change, message):
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
