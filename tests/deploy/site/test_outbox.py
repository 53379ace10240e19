"""The log of what leaves."""

import json

import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.messages import Message, digest_of
from idiolect.deploy.site.outbox import Outbox


def test_a_line_says_what_leaves_and_no_value_of_it(tmp_path):
    box = Outbox(tmp_path / "deep" / "sent.jsonl")
    vectors = {"w": np.full((2, 3), 0.123456789, np.float32)}
    box.write("hub", "round", Message({"n": 1}, vectors), run="r", round=4)
    box.write("site-2", "exchange", Message())
    first, second = box.lines()
    assert (first["to"], first["task"], first["run"], first["round"]) == ("hub", "round", "r", 4)
    assert first["vectors"] == {"w": ["float32", [2, 3]]}
    assert (first["bytes"], first["sha256"]) == (24, digest_of(vectors))
    assert (second["to"], second["bytes"], second["sha256"]) == ("site-2", 0, "")
    assert "0.1234" not in box.path.read_text()


TERMS = {"run": "cell/fedavg/seed0", "method": {"name": "fedavg", "rate": 0.5}, "kind": {"classes": ["a", "b"]}}


def test_terms_are_recorded_once_in_full_also_by_the_next_process(tmp_path):
    path = tmp_path / "sent.jsonl"
    box = Outbox(path)
    digest = box.record(TERMS)
    box.write("hub", "round", Message(), terms=digest)
    other = {**TERMS, "method": {"name": "fedavg", "rate": 1.0}}
    assert Outbox(path).record({**TERMS}) == box.record(TERMS) == digest != Outbox(path).record(other)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("record") for line in records] == ["kind", "terms", None, "terms"]  # the kind of the data once
    assert [line["task"] for line in box.lines()] == ["round"]
    assert [of["terms"] for of in box.terms().values()] == [TERMS, other]
    assert next(iter(box.terms())) == digest == next(box.lines())["terms"]
    path.rename(tmp_path / "old.jsonl")
    assert box.record(TERMS) == digest
    assert [*box.terms()] == [digest]


def test_terms_that_cannot_be_recorded_are_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="nothing is sent"):
        Outbox(tmp_path / "file" / "sent.jsonl").record(TERMS)


def test_a_line_cut_off_by_a_crash_is_left_out(tmp_path):
    box = Outbox(tmp_path / "sent.jsonl")
    assert [*box.lines()] == []
    box.write("hub", "hello", Message())
    whole = box.path.read_text()
    box.path.write_text(whole + whole[:20])
    assert [line["task"] for line in box.lines()] == ["hello"]
    assert json.loads(whole)["task"] == "hello"
    with box.path.open("a") as file:
        file.write("\n" + "[" * 100_000 + "\n")  # nested deeper than Python reads
    box.write("hub", "join", Message())  # the next one is whole
    assert [line["task"] for line in box.lines()] == ["hello", "join"]


def test_what_cannot_be_noted_is_not_sent(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="nothing is sent"):
        Outbox(tmp_path / "file" / "sent.jsonl").write("hub", "hello", Message())
