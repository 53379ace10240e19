"""Messages, sent and stored: a header of JSON values and named vectors, as bytes that nothing executes.

This module needs only NumPy, so that the process which talks to the network holds no JAX.
"""

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Shaped, UInt8
from safetensors import SafetensorError
from safetensors.numpy import load, save

from idiolect.core.errors import StoreError, reason_of
from idiolect.core.files import atomic_write, json_of
from idiolect.core.rights import private

Vector = Shaped[np.ndarray, "..."]
Vectors = Mapping[str, Vector]
Bytes = UInt8[np.ndarray, "bytes"]


@dataclass(frozen=True)
class Message:
    """One message. header: JSON values (numbers, texts, lists, tables); vectors: arrays by name."""

    header: Mapping[str, Any] = field(default_factory=dict[str, Any])
    vectors: Vectors = field(default_factory=dict[str, Vector])

    @property
    def error(self) -> str:
        """Why the sender could not answer; "" if it did."""
        return str(self.header.get("error", ""))

    @property
    def size(self) -> int:
        """Bytes of the vectors."""
        return size_of(self.vectors)


def size_of(vectors: Vectors) -> int:
    """The bytes of these vectors."""
    return sum(vector.nbytes for vector in vectors.values())


def packed(vectors: Vectors) -> Bytes:
    """The vectors as one array of bytes, in the format of safetensors."""
    contiguous = {name: np.ascontiguousarray(vector) for name, vector in vectors.items()}
    return np.frombuffer(save({name: v.reshape(vectors[name].shape) for name, v in contiguous.items()}), np.uint8)


def unpacked(body: Bytes | bytes) -> dict[str, Vector]:
    """The vectors that `packed` made bytes of. Raises `StoreError` for anything else; nothing is executed."""
    try:
        return load(bytes(body))
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"these bytes are no vectors ({str(error).splitlines()[0][:100]})") from None


def under(part: str, vectors: Vectors) -> dict[str, Vector]:
    """The vectors of one part, `part/...`, by their full names; a part may be a single vector of its own name."""
    return {name: vector for name, vector in vectors.items() if name == part or name.startswith(f"{part}/")}


def part_of(part: str, vectors: Vectors) -> dict[str, Vector]:
    """The vectors of one part by their names in it, as `trees.named` names the leaves of a tree."""
    start = f"{part}/"
    return {"value" if n == part else n.removeprefix(start): vector for n, vector in under(part, vectors).items()}


def digest_of(vectors: Vectors) -> str:
    """A sha256 over names, types, shapes and bytes, independent of their order."""
    sha = hashlib.sha256()
    for name in sorted(vectors):
        vector = np.ascontiguousarray(vectors[name])
        sha.update(f"{name} {vector.dtype.str} {vectors[name].shape}\0".encode())
        sha.update(vector.reshape(-1).view(np.uint8).data)
    return sha.hexdigest()


def text_of(values: Any) -> str:
    """JSON values as one text, the same for equal values."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest_of_values(values: Any) -> str:
    """A sha256 over JSON values: equal exactly when their texts are."""
    return hashlib.sha256(text_of(values).encode()).hexdigest()


def digest_of_request(message: Message, apart: Collection[str]) -> str:
    """A sha256 over a whole message: its vectors and every field of its header but those named in `apart`."""
    header = text_of({key: value for key, value in message.header.items() if key not in apart})
    return hashlib.sha256(f"{header}\0{digest_of(message.vectors)}".encode()).hexdigest()


def write_message(path: Path, message: Message) -> None:
    """Write a message as a file, complete or not at all: a line of JSON with a hash, then the vectors."""
    body = packed(message.vectors).data
    head = {"sha256": hashlib.sha256(body).hexdigest(), "header": dict(message.header)}
    with atomic_write(path) as file:
        file.write(json.dumps(head).encode() + b"\n")
        file.write(body)


def read_message(path: Path) -> Message | None:
    """Read what `write_message` wrote; None if there is no such file. Raises `StoreError` if it is damaged."""
    found = _opened(path, whole=True)
    if found is None:
        return None
    known, header, body = found
    if known != hashlib.sha256(body).hexdigest():
        raise StoreError(f"{path} is damaged: its content does not match its hash; restore it from a backup")
    return Message(header, unpacked(body))


def read_header(path: Path) -> dict[str, Any] | None:
    """The header of what `write_message` wrote, without reading the vectors; None if there is no such file.

    The hash is not compared: `read_message` does it. Raises `StoreError` for another kind of file.
    """
    found = _opened(path, whole=False)
    return None if found is None else found[1]


def _opened(path: Path, *, whole: bool) -> tuple[str, dict[str, Any], bytes] | None:
    """(hash, header, the bytes of the vectors if they are wanted) of a message's file; None if there is none."""
    try:
        with open(path, "rb") as file:
            line, body = file.readline(), file.read() if whole else b""
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {reason_of(error)}") from error
    try:
        head = json_of(line)
        known, header = str(head["sha256"]), head["header"]
    except (ValueError, KeyError, TypeError):
        raise StoreError(f"{path} is no message file of idiolect") from None
    if not isinstance(header, dict):
        raise StoreError(f"{path} is damaged: its first line has no header; restore it from a backup")
    return known, cast(dict[str, Any], header), body


def append_line(path: Path, line: Mapping[str, Any]) -> None:
    """Add a line, durably, to a file that only its owner may read. Raises `OSError` if it cannot be written."""
    append_lines(path, [line])


def append_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Add lines as `append_line` does, all at once."""
    with open(path, "a+b", opener=private) as file:
        if file.tell() and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
            file.write(b"\n")  # a crash has cut off the last line: it must not swallow this one
        file.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """All lines, in their order; none without a file. A line that a crash has cut off is left out."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                yield json_of(line)
            except ValueError:
                continue
