"""A neighbour's message is used if it has the own shapes, is finite, and is within scale."""

import numpy as np
import pytest

from idiolect.deploy.messages import Message
from idiolect.deploy.site.neighbours import SCALE, fitting

OWN = {"w": np.array([3.0, 0.0], "f4"), "b": np.array([4.0], "f4"), "n": np.array(7)}


def message(factor, **other):
    return Message({}, {**OWN, "w": factor * OWN["w"], "b": factor * OWN["b"], **other})


@pytest.mark.parametrize(("factor", "used"), [(0.0, True), (-9.9, True), (-10.1, False), (1e30, False)])
def test_a_message_beyond_the_scale_of_the_own_one_is_refused(factor, used):
    good, refused = fitting({"a": message(1.0), "b": message(factor)}, OWN)
    assert ({*good}, {*refused}) == (({"a", "b"}, set()) if used else ({"a"}, {"b"}))
    if not used:
        assert refused["b"].startswith("its message is out of scale: norm ")
        assert refused["b"].endswith("; the limit is 50")


def test_a_small_site_among_large_ones_takes_the_median_and_a_minority_cannot_raise_it():
    assert not fitting({"a": message(90.0), "b": message(95.0), "c": message(100.0)}, OWN)[1]
    assert {*fitting({"a": message(1.0), "b": message(1e6), "c": message(1.0)}, OWN)[1]} == {"b"}
    assert not fitting({"a": message(0.9 * SCALE**2)}, OWN)[1]  # of two nobody knows which one is wrong
    assert {*fitting({"a": message(1.1 * SCALE**2)}, OWN)[1]} == {"a"}


def test_what_has_other_shapes_or_is_not_finite_is_refused():
    wrong = {"a": message(1.0, w=np.zeros(3, "f4")), "b": message(np.nan), "c": message(1.0, w=OWN["w"].astype("f8"))}
    good, refused = fitting(wrong, OWN)
    assert not good
    assert refused["b"] == "its message holds NaN or infinity"
    assert refused["a"] == refused["c"] == "its message has other shapes"


def test_a_model_of_zeros_takes_any_message():
    zeros = {name: np.zeros_like(vector) for name, vector in OWN.items()}
    assert {*fitting({"a": message(1.0)}, zeros)[0]} == {"a"}
