"""Who is called, and how large an answer may be."""

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.headers import Request
from idiolect.deploy.hub.calls import HEADER, SMALL, Call, Roster, most_of
from idiolect.deploy.messages import Message
from idiolect.deploy.transport import Bounded, Replies


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


class Bounding:
    """A transport that notes the limits; each site sends what it is given here."""

    def __init__(self, answers):
        self.answers, self.sites, self.limits = answers, list(answers), []

    def bound(self, most):
        self.limits.append(most)

    def call(self, round, messages, *, deadline):
        assert len(self.limits) > 0  # the limit is known before anything is sent
        return Replies({site: self.answers[site] for site in messages})


def test_an_answer_that_is_larger_than_it_can_be_is_missing_and_the_transport_knows_the_limit():
    """Also one that claims 400 MB by its shape and holds 4 bytes: nothing of it is read."""
    most = most_of({"w": 400})
    sizes = {"fits": most - 1000, "large": most + 1, "huge": 400_000_000}
    answers = {site: Message({}, {"w": np.broadcast_to(np.uint8(0), size)}) for site, size in sizes.items()}
    answers["wordy"] = Message({"text": "x" * (HEADER + 1000)})
    transport = Bounding(answers)
    assert isinstance(transport, Bounded)
    call = Call(transport, 1)
    got = call({site: Request(task="round") for site in answers}, round=0, deadline=1.0, most=most)
    assert {*got.replies} == {"fits"}
    assert got.missing["huge"].startswith("its answer has 400,000,0")
    assert all(why.endswith(f"bytes; it can have at most {most:,}") for why in got.missing.values())
    call({"fits": Request(task="hello")}, round=0, deadline=1.0)
    assert transport.limits == [most, SMALL]
