import json

import numpy as np
import pytest

from idiolect.deploy.messages import Message
from idiolect.deploy.nvflare.wire import INSIDE, decoded, encoded, packed_once


@pytest.mark.parametrize("size", [0, 3, INSIDE // 4 - 100, INSIDE // 4 + 100])
def test_a_message_comes_back_bit_for_bit(size: int) -> None:
    sent = Message({"run": "r", "round": 3}, {"w": np.arange(size, dtype="f4"), "n": np.int64(7) * np.ones((), "i8")})
    came = decoded(encoded(sent))
    assert came.header == sent.header
    assert came.vectors["w"].tobytes() == sent.vectors["w"].tobytes()
    assert came.vectors["n"].shape == ()


def test_small_bodies_go_inside_the_call_and_large_ones_beside_it() -> None:
    assert isinstance(encoded(Message({}, {"w": np.zeros(10)}))[1], bytes)
    assert isinstance(encoded(Message({}, {"w": np.zeros(INSIDE)}))[1], np.ndarray)


@pytest.mark.parametrize(
    "parts",
    [
        None,
        3,
        (),
        ("{}",),
        ("{", b""),
        ("[]", b""),
        ("{}", "text"),
        ("{}", np.zeros(4)),
        ("{}", b"no vectors"),
        (b"\xff", b""),
        ("[" * 100_000, b""),
    ],
)
def test_what_is_no_message_is_a_message_with_an_error(parts: object) -> None:
    assert decoded(parts).error.startswith("sent something that is no message")


def test_vectors_in_common_are_packed_once() -> None:
    pack, vectors = packed_once(), {"w": np.zeros(3)}
    assert pack(vectors) is pack(vectors)
    assert json.loads(encoded(Message({"a": 1}, vectors), pack)[0]) == {"a": 1}
