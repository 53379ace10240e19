"""The rules of a hub: what is refused of a round's messages, whom it suspects, and how rows are capped."""

import numpy as np
import pytest

from idiolect.deploy.hub.guard import Guard, GuardSettings, Past, capped, exploded, losses_of, too_many
from idiolect.deploy.messages import Message

VIEW = {"view/w": np.array([3.0, 4.0], "f4")}


def judged(updates, past=None, rows=None, **settings):
    """The guard's verdict on models with these updates; site -> [two numbers]."""
    sites = list(updates)
    guard = Guard.of(GuardSettings(**settings), past or Past())
    messages = {site: {"w": (VIEW["view/w"] + np.array(u)).astype("f4")} for site, u in updates.items()}
    return guard, guard.judge(rows or dict.fromkeys(sites, 1.0), dict.fromkeys(sites, VIEW), messages)


HONEST = {"a": [1.0, 0.0], "b": [0.0, 2.0], "c": [0.5, 0.0]}


@pytest.mark.parametrize(("size", "refused"), [(9.9, set()), (10.1, {"d"}), (1e30, {"d"}), (3e38, {"d"})])
def test_above_the_scale_times_the_lower_median_a_message_is_refused(size, refused):
    received = judged({**HONEST, "d": [-size, 0.0]})[1]
    assert {*received.refused} == refused
    assert {*received.messages} == {*"abcd"} - refused
    if refused:
        assert received.refused["d"].startswith("site 'd': 'w' is out of scale: size")


def test_the_reference_is_never_below_the_floor():
    few = {"a": [1e-6, 0.0], "b": [0.0, 1e-6], "c": [0.9, 0.0], "d": [0.0, 1.1]}
    assert {*judged(few)[1].refused} == {"d"}  # ten times .02 of a view of norm 5
    assert {*judged(few, floor=0.0)[1].refused} == {"c", "d"}


def test_a_tiny_liar_makes_no_honest_site_out_of_scale():
    assert not judged({**HONEST, "d": [1e-9, 0.0]}, floor=0.0)[1].refused


def test_of_two_the_limit_is_the_scale_squared_and_of_one_its_own_past():
    assert not judged({"a": [1.0, 0.0], "b": [99.0, 0.0]})[1].refused
    assert {*judged({"a": [1.0, 0.0], "b": [101.0, 0.0]})[1].refused} == {"b"}
    assert not judged({"a": [1e9, 0.0]})[1].refused
    past = Past(own={"a": {"w": [1.0, 1.0, 1.0]}})
    assert {*judged({"a": [10.5, 0.0]}, past)[1].refused} == {"a"}


def test_a_site_is_compared_with_its_own_past():
    past = Past(own={"d": {"w": [0.1, 0.1, 0.1]}})
    assert not judged({**HONEST, "d": [1.9, 0.0]}, past, floor=0.0)[1].refused  # not above twice the reference
    assert {*judged({**HONEST, "d": [2.1, 0.0]}, past, floor=0.0)[1].refused} == {"d"}


def test_a_site_with_more_rows_may_be_larger():
    rows = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 3.0}
    assert not judged({**HONEST, "d": [29.0, 0.0]}, rows=rows)[1].refused
    assert {*judged({**HONEST, "d": [31.0, 0.0]}, rows=rows)[1].refused} == {"d"}


def test_refused_messages_are_nobody_s_past_and_the_past_survives_as_json():
    guard, received = judged({**HONEST, "d": [1e9, 0.0]})
    guard.note(received)
    assert {*guard.past.own} == {*HONEST}
    assert Past.of(guard.past.to_dict()) == guard.past


def test_clipped_messages_keep_their_direction():
    received = judged({**HONEST, "d": [-8.0, 0.0]}, clip=2.0)[1]
    np.testing.assert_allclose(received.messages["d"]["w"], [1.0, 4.0], rtol=1e-6)
    assert received.messages["a"]["w"].tolist() == [4.0, 4.0]


NEAR = {"a": [1.0, 0.0], "b": [1.0, 0.2], "c": [0.9, 0.0], "d": [1.1, 0.1]}


def test_the_robust_rule_takes_the_influence_from_what_is_apart():
    received = judged({**NEAR, "d": [-1.0, 0.0]}, robust=3.0)[1]
    assert not received.refused
    assert {*received.apart} == {"d"}
    assert received.apart["d"] > 3
    centre = received.messages["d"]["w"] - VIEW["view/w"]
    np.testing.assert_allclose(centre, [1.0, 0.0], atol=0.1)  # the median of the others
    assert "d" in {**judged({**NEAR, "d": [-1.0, 0.0]}, robust=3.0)[1].messages}


def test_the_robust_rule_leaves_messages_within_the_median_distance_bit_for_bit():
    guard, received = judged(NEAR, robust=3.0)
    before = {site: (VIEW["view/w"] + np.array(u)).astype("f4").tobytes() for site, u in NEAR.items()}
    same = [site for site in NEAR if received.messages[site]["w"].tobytes() == before[site]]
    assert 2 <= len(same) < 4  # the lower median of four distances
    assert received.sent["a"]["w"].tobytes() == before["a"]
    assert judged(NEAR)[1].messages["a"]["w"].tobytes() == before["a"]  # not without the rule
    assert all(site in received.messages for site in NEAR)
    guard.note(received)
    assert guard.suspects() == []


def test_the_robust_rule_leaves_two_messages_and_what_is_no_update():
    assert not judged({"a": [1.0, 0.0], "b": [-1.0, 0.0]}, robust=3.0)[1].apart
    guard = Guard.of(GuardSettings(robust=3.0), Past())
    sums = {site: {"count": np.array([size, size], "f4")} for site, size in zip("abcd", (1, 2, 3, 9), strict=True)}
    received = guard.judge(dict.fromkeys("abcd", 1.0), dict.fromkeys("abcd", VIEW), sums)
    assert all(received.messages[site] is sums[site] for site in "abcd")


def test_whom_to_suspect_is_judged_by_what_was_sent():
    guard, received = judged({**NEAR, "d": [-4.0, 0.0]}, robust=3.0)
    guard.note(received)
    assert guard.suspects() == ["d"]


def test_what_each_site_has_received_is_subtracted_from_its_message():
    """Updates decide, also where every site received something else."""
    updates = {**NEAR, "d": [-1.0, 0.0]}
    expected = judged(updates, robust=3.0)[1]
    views = {site: {"view/w": np.array([8.0 * k, -16.0 * k], "f4")} for k, site in enumerate(updates)}
    messages = {site: {"w": (views[site]["view/w"] + np.array(u)).astype("f4")} for site, u in updates.items()}
    guard = Guard.of(GuardSettings(robust=3.0), Past())
    received = guard.judge(dict.fromkeys(updates, 1.0), views, messages)
    assert received.apart == expected.apart
    for site in updates:
        got = received.messages[site]["w"] - views[site]["view/w"]
        np.testing.assert_allclose(got, expected.messages[site]["w"] - VIEW["view/w"], atol=1e-5)
    guard.note(received)
    assert guard.suspects() == ["d"]


def test_the_site_that_stands_apart_is_suspected():
    guard, received = judged({"a": [1.0, 0.0], "b": [1.0, 0.2], "c": [0.9, 0.0], "d": [-4.0, 0.0]})
    guard.note(received)
    assert guard.suspects() == ["d"]
    assert guard.suspects(["d"]) == []
    guard, received = judged({"a": [1.0, 0.0], "b": [-50.0, 0.0]})
    guard.note(received)
    assert guard.suspects() == []  # of two nobody knows which


@pytest.mark.parametrize(
    ("rows", "cap", "expected"),
    [
        ([275, 185, 80, 29], 0.5, [275, 185, 80, 29]),
        ([275, 185, 80, 10**9], 0.5, [275, 185, 80, 540]),
        ([10, 10**6, 10**9], 0.4, [10, 20, 20]),
        ([275, 185, 80, 10**9], 0.25, [80, 80, 80, 80]),
        ([275, 29], 0.5, [29, 29]),
        ([1, 10**9], 1.0, [1, 10**9]),
    ],
)
def test_capped_rows_are_at_most_the_share(rows, cap, expected):
    named = {str(place): count for place, count in enumerate(rows)}
    found = capped(named, cap)
    assert [*found.values()] == pytest.approx(expected)


def test_too_many_rows_are_refused_in_one_line():
    assert too_many({"train": 10}, GuardSettings()) == ""
    assert "it claims 1,000,000,000 train rows; the limit is 10,000,000" in too_many(
        {"train": 10**9}, GuardSettings()
    )


def test_losses_explode_when_more_than_half_say_so():
    first = {site: {"global": 1.0} for site in "abcd"}
    assert not exploded(
        first, {"a": {"global": 9.0}, "b": {"global": 9.0}, "c": {"global": 1}, "d": {"global": 1}}, 3
    )
    assert exploded(first, {"a": {"global": 9.0}, "b": {"global": np.inf}, "c": {"global": 4.0}}, 3)
    answer = Message({"scores": {"global": {"test": {"loss": 1.0}, "train": {"loss": float("nan")}}, "x": 3}})
    assert losses_of(answer, ["train", "test"]) == {"global": np.inf}
