import os
import pickle

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data.sets.mosei.files import read_features
from tests.data.mosei_data import VIDEOS, features, write_mosei

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
        (_set("train", "labels", lambda v: v + 4), "train, labels: row 1 is .*; sentiment lies in -3..3"),
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
