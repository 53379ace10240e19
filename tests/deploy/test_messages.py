"""Messages as bytes: exact, complete or refused, and never executed."""

import pickle

import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.messages import (
    Message,
    digest_of,
    digest_of_request,
    packed,
    part_of,
    read_header,
    read_message,
    under,
    unpacked,
    write_message,
)

VECTORS = {
    "a/weight": np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
    "a/count": np.array(3, np.int32),
    "b": np.array([True, False]),
    "empty": np.zeros((0, 4), np.float32),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}


def same(one, other):
    assert one.keys() == other.keys()
    for name, vector in one.items():
        np.testing.assert_array_equal(vector, other[name])
        assert (vector.dtype, vector.shape) == (other[name].dtype, other[name].shape)


def test_vectors_come_back_bit_for_bit():
    same(VECTORS, unpacked(packed(VECTORS)))
    same({}, unpacked(packed({})))


def test_other_bytes_are_refused_and_not_executed():
    for body in (b"", b"nonsense", pickle.dumps({"a": 1}), packed(VECTORS).tobytes()[:-1]):
        with pytest.raises(StoreError, match="no vectors"):
            unpacked(body)


def test_a_digest_is_of_content_alone():
    backwards = dict(reversed(VECTORS.items()))
    assert digest_of(VECTORS) == digest_of(backwards)
    changes = [
        {**VECTORS, "b": np.array([True, True])},
        {**VECTORS, "a/count": np.array(3, np.int64)},
        {**VECTORS, "a/weight": VECTORS["a/weight"].reshape(3, 2)},
        {**{n: v for n, v in VECTORS.items() if n != "b"}, "c": VECTORS["b"]},
    ]
    assert len({digest_of(changed) for changed in [VECTORS, *changes]}) == 5


def test_a_request_s_digest_covers_every_field_but_those_named():
    header = {"task": "round", "place": {"clients": 3, "weights": [0.5, 1]}, "call": 7}
    whole = digest_of_request(Message(header, VECTORS), ("call",))
    same_header = {"call": 9, "place": {"weights": (0.5, 1), "clients": 3}, "task": "round"}
    assert digest_of_request(Message(same_header, dict(reversed(VECTORS.items()))), ("call",)) == whole
    for changed in (
        Message({**header, "place": {"clients": 4, "weights": [0.5, 1]}}, VECTORS),
        Message({**header, "new": None}, VECTORS),
        Message({key: value for key, value in header.items() if key != "task"}, VECTORS),
        Message(header, {**VECTORS, "b": np.array([True, True])}),
        Message(header, {}),
    ):
        assert digest_of_request(changed, ("call",)) != whole
    assert digest_of_request(Message({**header, "call": 8}, VECTORS), ()) != digest_of_request(
        Message(header, VECTORS), ()
    )


def test_parts():
    assert [*part_of("a", VECTORS)] == ["weight", "count"]
    assert [*part_of("b", VECTORS)] == ["value"]
    assert [*under("a", VECTORS)] == ["a/weight", "a/count"]


def test_a_file_comes_back_or_is_refused(tmp_path):
    path = tmp_path / "m.msg"
    assert read_message(path) is None
    write_message(path, Message({"round": 3}, VECTORS))
    read = read_message(path)
    assert read is not None
    assert read.header == {"round": 3}
    same(VECTORS, read.vectors)
    content = path.read_bytes()
    other = content.replace(b'"round": 3', b'"round": 4') + b"x"
    for damaged in (content[:-1], content[:20], b"", other, b"[" * 100_000 + b"\n"):
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match=str(path)):
            read_message(path)


def test_a_header_is_read_without_the_vectors(tmp_path):
    path = tmp_path / "kept.msg"
    assert read_header(path) is None
    write_message(path, Message({"round": 3}, {"x": np.ones(5, "f4")}))
    assert read_header(path) == {"round": 3}
    path.write_bytes(path.read_bytes().partition(b"\n")[0] + b"\n")
    assert read_header(path) == {"round": 3}
    with pytest.raises(StoreError, match="damaged"):
        read_message(path)
    path.write_bytes(b'{"sha256": "0", "header": [1]}\n')
    with pytest.raises(StoreError, match="its first line has no header"):
        read_header(path)
    path.write_bytes(b"no JSON\n")
    with pytest.raises(StoreError, match="no message file"):
        read_header(path)


def test_what_a_message_says():
    assert Message({"error": "no"}).error == "no"
    assert Message().error == ""
    assert Message({}, VECTORS).size == sum(vector.nbytes for vector in VECTORS.values())


def test_a_part_does_not_contain_parts_with_longer_names():
    vectors = {"view": np.zeros(1), "view/x": np.ones(1), "view2/x": np.ones(2), "viewed": np.ones(3)}
    assert [*under("view", vectors)] == ["view", "view/x"]
    assert [*part_of("view2", vectors)] == ["x"]


def test_a_header_that_is_nested_too_deeply_is_refused(tmp_path):
    """Just below Python's limit: it can be parsed, but what compares or writes it has a deeper stack."""
    path = tmp_path / "m"
    write_message(path, Message({"round": 3}))
    line, _, body = path.read_bytes().partition(b"\n")
    for levels in (900, 100_000):
        path.write_bytes(line.replace(b'"round": 3', b'"round": ' + b"[" * levels + b"]" * levels) + b"\n" + body)
        with pytest.raises(StoreError, match="is no message file of idiolect"):
            read_message(path)
