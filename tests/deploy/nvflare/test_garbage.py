"""A worker's memory does not grow with its calls: cycles are freed, what was loaded is looked at once."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from idiolect.deploy.nvflare.garbage import EVERY, Collector


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def by_hand() -> Iterator[None]:
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()


def left(cycles: "list[weakref.ref[Cycle]]") -> int:
    return sum(cycle() is not None for cycle in cycles)


def test_at_most_the_cycles_of_the_last_calls_are_kept() -> None:
    collect, cycles = Collector(), []
    most = 0
    for _ in range(5 * EVERY):
        cycles.append(weakref.ref(Cycle()))
        collect()
        most = max(most, left(cycles))
    assert most == EVERY - 1
    assert left(cycles[: 4 * EVERY + 1]) == 0


def test_what_the_first_call_loaded_is_frozen_and_its_garbage_is_not() -> None:
    garbage, before = weakref.ref(Cycle()), gc.get_freeze_count()
    Collector()()
    assert garbage() is None
    assert gc.get_freeze_count() > before
    assert len(gc.get_objects()) < 1000  # frozen objects are not among them
