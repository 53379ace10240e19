"""What a hub notes of its calls: hashes that a site's log has, too, and what it waits for."""

import json

import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.headers import Greeting, Request
from idiolect.deploy.hub.received import (
    GREETINGS,
    NOW,
    Now,
    Received,
    greetings_of,
    keep_greetings,
    per_site,
    read_now,
)
from idiolect.deploy.messages import Message, digest_of_values
from idiolect.deploy.site.outbox import Outbox
from idiolect.deploy.transport import Replies

TICKET = {"job": 7, "call": 3, "round": 2, "seconds": 9.0}
W = {"w": np.arange(3, dtype=np.float32)}


def test_hub_and_site_note_the_same_hashes(tmp_path):
    answer = Message({"samples": {"train": 3}}, W)
    Outbox(tmp_path / "sent.jsonl").write("server", "round", answer, job=7, call=3)
    (sent,) = Outbox(tmp_path / "sent.jsonl").lines()
    got = Replies({"a": answer}, {"b": "no answer within 9 s"}, frozenset("ab"), {"a": 0.12345})
    request = Request(task="round", run="r")
    Received(tmp_path).write({"a": request, "b": request}, TICKET, got)
    came, absent = Received(tmp_path).lines()
    assert (came["sha256"], came["bytes"]) == (sent["sha256"], sent["bytes"]) == (came["sha256"], 12)
    assert came["header_sha256"] == digest_of_values(sent["header"])
    assert (came["seconds"], came["job"], came["call"], came["round"], came["task"]) == (0.123, 7, 3, 2, "round")
    assert (absent["site"], absent["error"]) == ("b", "no answer within 9 s")
    assert "sha256" not in absent
    with pytest.raises(StoreError, match="cannot write"):
        Received(tmp_path / "gone").write({"a": request}, TICKET, got)


def test_seconds_and_bytes_of_each_site_that_was_called():
    got = Replies({"a": Message({}, W)}, {"b": "late"}, frozenset("ab"), {"a": 0.5})
    assert per_site({"a": W, "b": W, "c": W}, got) == {
        "a": {"bytes_down": 12, "bytes_up": 12, "seconds": 0.5},
        "b": {"bytes_down": 12, "bytes_up": 0},
    }


def test_what_is_awaited_can_be_read_until_the_job_ends(tmp_path):
    assert read_now(tmp_path) is None
    doing = Now(tmp_path)
    doing.write({"b": Request(task="join", run="r"), "a": Request(task="join", run="r")}, TICKET, 30.0)
    found = read_now(tmp_path)
    assert found is not None
    assert (found["task"], found["sites"], found["run"], found["deadline"]) == ("join", ["a", "b"], "r", 30.0)
    assert [path.name for path in tmp_path.iterdir()] == [NOW]
    (tmp_path / NOW).write_text('{"round": "x"}')
    assert read_now(tmp_path) is None
    doing.close()
    doing.close()
    assert not (tmp_path / NOW).exists()
    Now(tmp_path / "gone").write({}, TICKET, 1.0)  # for onlookers only


def test_greetings_are_kept_until_the_next_of_the_same_site(tmp_path):
    assert greetings_of(tmp_path) == {}
    keep_greetings(tmp_path, {"a": Greeting(name="a", protocol=1, version="1", expires="2027-01-01T00:00:00+00:00")})
    keep_greetings(tmp_path, {"b": Greeting(name="b", protocol=1, version="2")})
    found = greetings_of(tmp_path)
    assert {site: (one["version"], one["expires"]) for site, one in found.items()} == {
        "a": ("1", "2027-01-01T00:00:00+00:00"),
        "b": ("2", ""),
    }
    (tmp_path / GREETINGS).write_text(json.dumps([1]))
    assert greetings_of(tmp_path) == {}
