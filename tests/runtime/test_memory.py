"""How many runs go at once: the estimate beside XLA's count, and what a budget allows."""

import math
import os
from dataclasses import replace

import jax
import pytest

from idiolect.algorithms.ditto import Ditto
from idiolect.algorithms.pfedme import PFedMe
from idiolect.core.errors import ConfigError
from idiolect.runtime.memory import MEMORY, at_once, default_memory
from idiolect.runtime.program import Program, member_of
from tests.federations import classification

METHODS = {"ditto": Ditto(local_steps=3, batch_size=4), "pfedme": PFedMe(local_steps=3, batch_size=4, inner_steps=2)}


def program(method, block=None, runs=6):
    problem = classification((9, 20, 14, 6, 30))
    sims = [problem.simulation(replace(METHODS[method], rate=0.01 * (i + 1)), cohort=3) for i in range(runs)]
    members = [member_of(sim, ("test",)) for sim in sims]
    return Program(sims, members, block=block)


def counted(program, rows):
    return program.bytes_compiled(rows, 3, ("test",), program.like.algorithm.model_names[:1])


@pytest.mark.second
@pytest.mark.parametrize(("method", "block"), [("ditto", 1), ("ditto", 8), ("pfedme", 8)])
def test_the_estimate_is_within_a_factor_of_what_xla_counts(method, block):
    made = program(method, block)
    for rows in (1, 6):
        assert 1 / 4 < made.bytes_about(rows) / counted(made, rows) < 4
    assert made.bytes_about(6) < 6.01 * made.bytes_about(1)


def test_as_many_go_at_once_as_the_count_allows():
    made = program("ditto", 8)
    memory = counted(made, 3)
    size = at_once(6, memory, made.bytes_about, lambda rows: counted(made, rows))
    assert 1 < size <= 3
    assert counted(made, size) <= memory < counted(made, 6)


def flat(rows):
    return 10 * rows


def never(rows):
    raise AssertionError("XLA is not asked where the estimate leaves no doubt")


def test_portions_are_equal_and_fit():
    assert at_once(100, 10**6, flat, never) == 100
    assert at_once(100, 1, flat, never) == 1
    assert at_once(100, 1000, lambda rows: 10**9 + flat(rows), never) == 1
    for memory in (10, 35, 120, 500, 999):
        size = at_once(100, memory, flat, flat)
        assert 10 * size <= memory
        assert size >= 0.5 * memory / 10
        assert size == math.ceil(100 / math.ceil(100 / size))


def test_where_the_estimate_is_too_low_xla_has_the_last_word():
    assert at_once(100, 1000, flat, lambda rows: 40 * rows) == 25


def test_the_budget_is_the_users_or_a_share_of_the_machine(monkeypatch):
    monkeypatch.delenv(MEMORY, raising=False)
    assert default_memory() > 10**8
    monkeypatch.setenv(MEMORY, "0.5")
    assert default_memory() == 500_000_000
    for bad in ("-1", "0", "much", "nan", "inf"):
        monkeypatch.setenv(MEMORY, bad)
        with pytest.raises(ConfigError, match=f"{MEMORY} = {bad} must be a number of GB greater than 0"):
            default_memory()


class Device:
    """An accelerator that says how much memory it has, or a device that does not."""

    def __init__(self, limit):
        self.limit = limit

    def memory_stats(self):
        return None if self.limit is None else {"bytes_limit": self.limit}


@pytest.mark.parametrize(
    ("backend", "limits", "expected"),
    [
        ("gpu", [101, 200], 150),  # half of what all have together, whole bytes
        ("gpu", [100, None], None),
        ("cpu", [100, 100], None),
        ("cpu", [None], None),
    ],
)
def test_the_share_is_half_of_the_accelerators_or_a_quarter_of_the_machines(monkeypatch, backend, limits, expected):
    monkeypatch.delenv(MEMORY, raising=False)
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(jax, "local_devices", lambda: [Device(limit) for limit in limits])
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1001, "SC_PAGE_SIZE": 4096}.__getitem__, raising=False)
    assert default_memory() == (expected or 1001 * 4096 // 4)
    assert isinstance(default_memory(), int)
    if expected is None:
        with monkeypatch.context() as silent:
            silent.setattr(os, "sysconf", {}.__getitem__, raising=False)  # a system that does not say
            assert default_memory() == 2**30


def test_xla_is_asked_only_near_the_budget():
    asked = []

    def counts(rows):
        asked.append(rows)
        return flat(rows)

    assert at_once(100, 16_000, flat, counts) == 100
    assert asked == []
    assert at_once(100, 15_999, flat, counts) == 100
    assert asked == [100]
    assert at_once(100, 1000, flat, counts) == 100
    assert asked == [100, 100]
