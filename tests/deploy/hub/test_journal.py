"""What a hub keeps between rounds."""

import json

import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.hub.journal import Participation, Standing


def test_a_standing_comes_back(tmp_path):
    path = tmp_path / "a.hub"
    assert Standing.load(path, "r") is None
    vectors = {"w": np.arange(3, dtype=np.float32)}
    standing = Standing(4, {"a": 3, "b": 1}, {"a": {"train": 2}}, 1.5, vectors)
    standing.save(path, "r")
    back = Standing.load(path, "r")
    assert (back.round, back.used, back.counts, back.seconds) == (4, standing.used, standing.counts, 1.5)
    assert (back.vectors["w"] == vectors["w"]).all()
    with pytest.raises(StoreError, match="of another run or version; delete it"):
        Standing.load(path, "another")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match="damaged"):
        Standing.load(path, "r")


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
