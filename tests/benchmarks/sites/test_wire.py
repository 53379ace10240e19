"""The search for private numbers finds what is there, at any offset, and nothing else."""

import json
import sqlite3
import struct
from pathlib import Path

import numpy as np

from benchmarks.sites.wire import Recorder, decimals, hits, kind_of, needles, text_hits
from idiolect.deploy.messages import Message, write_message

SECRET = np.random.default_rng(0).normal(size=(4, 5)).astype("f4")
OTHER = np.random.default_rng(1).normal(size=400).astype("f4")


def test_two_neighbouring_numbers_are_found_at_every_offset_and_others_are_not() -> None:
    wanted = needles([SECRET, np.zeros(9, np.float32)])
    assert len(wanted) == SECRET.size - 1
    for offset in range(17):
        content = b"x" * offset + SECRET[1, 1:3].tobytes() + OTHER.tobytes()
        assert hits(content, wanted) == 1
    assert hits(OTHER.tobytes() + bytes(100), wanted) == 0
    assert hits(b"", wanted) == hits(SECRET.tobytes(), needles([])) == 0


def test_numbers_are_found_as_text() -> None:
    wanted = decimals([SECRET])
    assert text_hits(json.dumps({"a": [float(SECRET[2, 2])]}).encode(), wanted) == 1
    assert text_hits(json.dumps([float(value) for value in OTHER]).encode(), wanted) == 0


def test_the_content_of_packets_is_kept_by_port_and_joined() -> None:
    recorder = Recorder()
    for content in (SECRET.tobytes()[:6], SECRET.tobytes()[6:]):
        tcp = struct.pack("!HHIIBBHHH", 5000, 8002, 0, 0, 0x50, 0, 0, 0, 0)
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + len(content), 0, 0, 64, 6, 0, bytes(4), bytes(4))
        recorder.take(bytes(12) + b"\x08\x00" + ip + tcp + content)
    recorder.take(bytes(12) + b"\x08\x06" + bytes(60))  # no TCP
    assert recorder.content(8002, True) == {(5000, 8002): SECRET.tobytes()}
    assert recorder.content(8002, False) == {}


def test_a_file_that_must_be_unpickled_is_of_no_known_kind(tmp_path: Path) -> None:
    write_message(tmp_path / "a.hub", Message({"round": 1}, {"x": OTHER}))
    (tmp_path / "b.json").write_text("{}")
    (tmp_path / "c.jsonl").write_text("{}\n{}\n")
    (tmp_path / "d.json").write_text("{")
    (tmp_path / "e.pkl").write_bytes(b"\x80\x04N.")
    (tmp_path / "f.json").write_bytes(b"\x80\x04N.")
    (tmp_path / ".lock").touch()
    with sqlite3.connect(tmp_path / "g.sqlite") as store:
        store.execute("create table t (x)")
    kinds = {path.name: kind_of(path) for path in tmp_path.iterdir()}
    assert kinds == {
        "a.hub": "message",
        "b.json": "JSON",
        "c.jsonl": "JSONL",
        "d.json": "?",
        "e.pkl": "?",
        "f.json": "?",
        ".lock": "empty",
        "g.sqlite": "SQLite",
    }
