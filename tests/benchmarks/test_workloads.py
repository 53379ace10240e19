"""The systems of the benchmark do equal work: from one start they make one result."""

from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.beginning import beginning
from benchmarks.oracle import distance, expected, start_of
from benchmarks.peers import OWN, make
from benchmarks.samples import Given
from benchmarks.workloads import named, smaller
from tests.benchmarks.loops import by_hand
from tests.tiers import second

ROUNDS = 2
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="the extra `bench` is not installed")


def own_result(name: str, given: Given) -> list[np.ndarray]:
    system = make(OWN, smaller(named(name)), given)
    system.rounds(ROUNDS)
    return system.result()


def moved(given: Given, result: list[np.ndarray]) -> float:
    """How far the rounds have come from the start."""
    return distance(result, [np.broadcast_to(w, r.shape) for w, r in zip(given.weights, result, strict=True)])


@pytest.mark.parametrize("name", ["W1", second("W1s"), second("W3")])
def test_idiolect_makes_what_a_loop_by_hand_makes(name: str) -> None:
    work = smaller(named(name))
    given = beginning(work, ROUNDS, rows=True)
    result = own_result(name, given)
    gap = distance(result, by_hand(work, given, ROUNDS))
    assert gap < 1e-4
    assert gap < moved(given, result) / 100


@needs_torch
@pytest.mark.parametrize(
    ("peer", "name"),
    [("torch", name) for name in ("W1", "W1s", "W2s", "W3", "W5", "W7")]
    + [("torch-func", name) for name in ("W1s", "W3", "W5", "W7")],
)
def test_pytorch_makes_what_idiolect_makes(peer: str, name: str) -> None:
    work = smaller(named(name))
    given = beginning(work, ROUNDS, **start_of(work, peer))
    result = own_result(name, given)
    system = make(peer, work, given)
    system.rounds(ROUNDS)
    assert system.gradients == expected(work, ROUNDS)
    gap = distance(result, system.result())
    assert gap < 1e-4
    assert gap < moved(given, result) / 100


@needs_torch
@pytest.mark.parametrize("peer", ["torch", "torch-func"])
def test_pytorch_scores_as_idiolect_does(peer: str) -> None:
    work = smaller(named("W8"))
    given = beginning(work, 1)
    scores = [make(name, work, given) for name in (OWN, peer)]
    for system in scores:
        system.rounds(1)
    losses, accuracies = scores[0].result()
    assert distance([losses, accuracies], scores[1].result()) < 1e-5
    assert losses.std() > 1e-3  # everyone has a model of their own


@needs_torch
def test_where_samples_are_alike_their_order_is_nothing() -> None:
    work = smaller(named("W3"))
    given = beginning(work, ROUNDS, alike=True)
    result = own_result("W3", given)
    loop = make("torch", work, given)  # it shuffles by itself
    loop.rounds(ROUNDS)
    gap = distance(result, loop.result())
    assert gap < 1e-4
    assert gap < moved(given, result) / 100
