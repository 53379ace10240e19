"""Good checkpoints: the newest few are kept."""

import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.hub.checkpoints import Checkpoints
from idiolect.deploy.hub.journal import HubState


def test_the_newest_few_are_kept_and_those_of_an_abandoned_line_are_not(tmp_path):
    good = Checkpoints(tmp_path / "t__a__seed0.hub", "t/a/seed0", 2)
    other = Checkpoints(tmp_path / "t__a__seed01.hub", "t/a/seed01", 2)
    other.save(HubState(round=7))
    for round in (0, 5, 10):
        good.save(HubState(round=round, vectors={"w": np.full(2, round, "f4")}))
    assert good.rounds == [5, 10]
    assert good.load(5).vectors["w"].tolist() == [5.0, 5.0]
    good.save(HubState(round=8))
    assert good.rounds == [5, 8]
    assert other.rounds == [7]
    with pytest.raises(StoreError, match=r"good-10\.hub is missing"):
        good.load(10)
