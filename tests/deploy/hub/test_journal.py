"""What a hub keeps between rounds."""

import json

import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.hub.journal import HubState, Participation, Traffic, exchanged, met_of
from idiolect.deploy.messages import Message


def test_a_standing_comes_back(tmp_path):
    path = tmp_path / "a.hub"
    assert HubState.load(path, "r") is None
    vectors = {"w": np.arange(3, dtype=np.float32)}
    standing = HubState(4, {"a": 3, "b": 1}, {"a": {"train": 2}}, 1.5, vectors)
    standing.save(path, "r")
    back = HubState.load(path, "r")
    assert (back.round, back.used, back.counts, back.seconds) == (4, standing.used, standing.counts, 1.5)
    assert (back.vectors["w"] == vectors["w"]).all()
    with pytest.raises(StoreError, match="of another run or version; delete it"):
        HubState.load(path, "another")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match="damaged"):
        HubState.load(path, "r")


def test_lines_come_back_without_one_that_was_cut_off(tmp_path):
    log = Participation(tmp_path)
    assert [*log.lines()] == []
    log.write({"round": 0})
    log.write({"round": 1})
    with log.path.open("ab") as file:
        file.write(json.dumps({"round": 2}).encode()[:-1])
    assert [line["round"] for line in log.lines()] == [0, 1]
    with pytest.raises(StoreError, match="cannot write"):
        Participation(tmp_path / "nowhere").write({})


def test_what_rounds_have_moved_by_run_and_a_repeated_round_counts_once(tmp_path):
    log = Participation(tmp_path)
    assert log.traffic() == {}
    log.write({"run": "a", "round": 0, "bytes_down": 1, "bytes_up": 1})  # of an older version
    line = {"run": "a", "round": 0, "asked": 4, "replies": 4, "bytes_down": 80, "bytes_up": 40}
    for more in ({"bytes_down": 9}, {}, {"round": 1, "replies": 2, "bytes_up": 20}, {"run": "b"}):
        log.write({**line, **more})
    found = log.traffic()
    assert found["a"] == Traffic(160, 60, 8, 6)
    assert found["a"].of_a_client == found["b"].of_a_client == (20, 10)
    assert Traffic(80, 0, 4, 0).of_a_client is None


def test_what_sites_say_of_their_exchange_is_not_trusted_to_be_numbers():
    told = ([5, 3], [2, 1], [True, 1], ["5", 3], [1], "50", None, [-7, 1.5], [-7, 4])
    assert exchanged(met_of(Message({"exchanged": one})) for one in told) == (7, 4)
    assert exchanged([met_of(Message())]) == (0, 0)
    assert met_of(Message({"missing": {"b": "late"}})).missing == {"b": "late"}
    assert met_of(Message({"missing": {"b": ["late"] * 1000}})).missing == {}
