import os
import pickle
from fractions import Fraction

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data.files.safe_pickle import load_dictionary
from tests.data.pickles import python2_pickle

RNG = np.random.default_rng(0)
PLAIN = {"labels": [3, 1, 255], "name": "batch \xe9", "data": RNG.integers(0, 256, (4, 5), dtype=np.uint8)}


def same(found, expected):
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        if isinstance(value, np.ndarray):
            assert found[key].dtype == value.dtype
            np.testing.assert_array_equal(found[key], value)
        else:
            assert found[key] == value


def test_reads_what_python_2_wrote_as_numpy_itself_does():
    content = python2_pickle(PLAIN)
    same(load_dictionary(content, "f"), PLAIN)
    same(pickle.loads(content, encoding="latin1"), PLAIN)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["u1", "i4", ">i2", "f8", "?"])
def test_reads_what_python_3_writes(protocol, dtype):
    array = RNG.integers(0, 100, (3, 2, 4)).astype(dtype)
    values = {"a": array, "t": np.asfortranarray(array), "n": None, "x": 1.5, "many": (1, [2, {"k": b"\xff\x00"}])}
    found = load_dictionary(pickle.dumps(values, protocol), "f")
    same(found, values)
    found["a"][0] = 0  # its own memory


class Runs:
    """Would make a folder when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_code_is_refused_and_not_run(tmp_path, protocol):
    target = tmp_path / "made"
    content = pickle.dumps({"data": [Runs(target)]}, protocol)
    with pytest.raises(DataError, match=r"f is refused: it asks for (posix|nt)\.mkdir"):
        load_dictionary(content, "f")
    assert not target.exists()
    pickle.loads(content)
    assert target.exists()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"\x80\x02cbuiltins\neval\nU\x031+1\x85R.", "builtins.eval"),
        (b"c__builtin__\ngetattr\n.", "__builtin__.getattr"),
        (b"\x80\x04\x8c\x05numpy\x8c\x04load\x93.", "numpy.load"),
        (b"cnumpy.core.multiarray\nscalar\n.", "numpy.core.multiarray.scalar"),
        (pickle.dumps(Fraction(1, 2)), "fractions.Fraction"),
        (pickle.dumps({"a": np.arange(3)}, 5), "numpy._core.numeric._frombuffer"),
    ],
)
def test_any_other_name_is_refused(content, name):
    with pytest.raises(DataError, match=f"asks for {name}"):
        load_dictionary(content, "f")


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_reads_arrays_of_texts_and_objects_at_any_depth(protocol):
    values = {
        "names": np.array([["video", "\xe9\u4e2d"], ["", "x" * 40]]),
        "bytes": np.array([b"ab", b"c"]),
        "objects": np.asfortranarray(np.array([[None, 1.5, "t"], [b"z", (1, 2), [3]]], dtype=object)),
    }
    nested = {"train": {**values, "many": [values["names"], (values["bytes"],)]}, "n": 3}
    found = load_dictionary(pickle.dumps(nested, protocol), "f")
    assert found["n"] == 3
    for key, value in values.items():
        assert found["train"][key].dtype == value.dtype
        np.testing.assert_array_equal(found["train"][key], value)
    np.testing.assert_array_equal(found["train"]["many"][0], values["names"])
    np.testing.assert_array_equal(found["train"]["many"][1][0], values["bytes"])


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_code_is_refused_wherever_it_hides(tmp_path, protocol):
    for hidden in (np.array([Runs(tmp_path / "made"), 1], dtype=object), {"deep": [(Runs(tmp_path / "made"),)]}):
        with pytest.raises(DataError, match=r"refused: it asks for (posix|nt)\.mkdir"):
            load_dictionary(pickle.dumps({"a": hidden}, protocol), "f")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps({"a": np.array([(1, 2.0)], dtype=[("x", "i4"), ("y", "f8")])}, 2),
        pickle.dumps({"a": np.array(["2020-01-01"], dtype="M8[D]")}, 2),
        pickle.dumps({"a": np.array(["text"])}, 2).replace(b"t\x00\x00\x00", b"t\xff\xff\xff"),  # no character
        pickle.dumps({"a": np.array([1.0])}, 2).replace(b"X\x01\x00\x00\x00<", b"X\x01\x00\x00\x00V"),
        pickle.dumps({"a": np.array([None, 1], dtype=object)}, 2).replace(b"K\x02\x85", b"K\x03\x85"),
    ],
)
def test_only_plain_arrays(content):
    with pytest.raises(DataError, match="damaged or not a pickle"):
        load_dictionary(content, "f")


def test_a_value_that_holds_itself_is_refused():
    values: dict = {}
    values["a"] = [values]
    with pytest.raises(DataError, match="damaged or not a pickle"):
        load_dictionary(pickle.dumps(values), "f")


def test_a_value_that_is_shared_is_made_once():
    value = [np.arange(3)]
    for _ in range(60):  # 2^60 values, were each made by itself
        value = [value, value]
    found = load_dictionary(pickle.dumps({"a": value}), "f")["a"]
    for _ in range(60):
        assert found[0] is found[1]
        found = found[0]
    np.testing.assert_array_equal(found[0], np.arange(3))


def test_no_codec_but_the_one_for_bytes():
    with pytest.raises(DataError, match="bytes in the encoding 'zlib'"):
        load_dictionary(b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x04\x00\x00\x00zlibtR.", "f")


def test_every_truncation_is_one_clear_line():
    content = python2_pickle(PLAIN)
    for length in range(len(content)):
        with pytest.raises(DataError, match=r"^f is truncated, damaged or not a pickle") as caught:
            load_dictionary(content[:length], "f")
        assert "\n" not in str(caught.value)


def test_a_wrong_length_is_found():
    content = python2_pickle({"data": PLAIN["data"]}).replace(b"J\x05\x00\x00\x00", b"J\x06\x00\x00\x00")
    with pytest.raises(DataError, match="damaged"):
        load_dictionary(content, "f")


def test_another_object_is_no_dictionary():
    with pytest.raises(DataError, match="holds a list, not a dictionary"):
        load_dictionary(pickle.dumps([1]), "f")
