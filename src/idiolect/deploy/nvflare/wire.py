"""A message as the two arguments of an engine's call: its header as JSON text, its vectors as one array of bytes."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from idiolect.core.errors import StoreError
from idiolect.deploy.messages import Bytes, Message, Vectors, packed, unpacked

Pack = Callable[[Vectors], Bytes]


def packed_once() -> Pack:
    """`packed`, which packs vectors that several messages have in common once. Not to be kept longer than them."""
    known: dict[int, Bytes] = {}

    def pack(vectors: Vectors) -> Bytes:
        if id(vectors) not in known:
            known[id(vectors)] = packed(vectors)
        return known[id(vectors)]

    return pack


def encoded(message: Message, pack: Pack = packed) -> tuple[str, Bytes]:
    """The header as JSON and the vectors as bytes."""
    return json.dumps(dict(message.header)), pack(message.vectors)


def decoded(parts: Any) -> Message:
    """The message of `encoded`'s two parts; of anything else, a message with an error."""
    try:
        head, body = parts
        header = json.loads(head)
        if not isinstance(header, dict) or not (isinstance(body, np.ndarray) and body.dtype == np.uint8):
            return Message({"error": "sent something that is no message"})
        return Message(header, unpacked(body))
    except StoreError as error:
        return Message({"error": f"sent something that is no message: {error}"})
    except (TypeError, ValueError):
        return Message({"error": "sent something that is no message"})
