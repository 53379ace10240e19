"""Who is called."""

import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.hub.calls import Roster


def test_counts_are_kept_and_may_not_change():
    roster = Roster(patience=2)
    roster.join("b", {"train": 3, "test": 1})
    roster.join("a", {"train": 2, "test": 1})
    assert roster.names == ["b", "a"]
    assert roster.number("a") == 1
    roster.join("b", {"train": 3, "test": 1})
    with pytest.raises(DataError, match=r"data have changed since the run began \(train: 3 samples then, 4 now\)"):
        roster.join("b", {"train": 4, "test": 1})
    assert roster.counts["b"] == {"train": 3, "test": 1}


def test_a_silent_site_is_asked_every_tenth_round_until_it_answers():
    roster = Roster(patience=2)
    for round in (3, 4):
        assert roster.asked(["a", "b"], round) == ["a", "b"]
        roster.heard(["b"], ["a"])
    assert [roster.asked(["a", "b"], round) for round in (5, 9, 10)] == [["b"], ["b"], ["a", "b"]]
    roster.heard(["a"], [])
    assert roster.asked(["a", "b"], 11) == ["a", "b"]
