"""The operations of a round, traced."""

import pytest

from benchmarks.beginning import beginning
from benchmarks.peers.own import Rounds
from benchmarks.profile import traced
from benchmarks.workloads import named, smaller


@pytest.mark.second
def test_a_rounds_operations_are_found_with_their_times() -> None:
    """A product inside the loop over steps runs once a step of a client, at least."""
    work = smaller(named("W5"))
    found = traced(Rounds(work, beginning(work, 2)))
    products = {name: times for (name, times) in found if "dot" in name or "fusion" in name}
    assert products
    assert max(products.values()) >= work.clients
    assert all(micro >= 0 for micro in found.values())
