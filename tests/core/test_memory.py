from types import SimpleNamespace

import pytest

from idiolect.core import memory
from idiolect.core.errors import ConfigError


def test_what_needs_more_than_the_machine_has_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 4_000_000_000)
    memory.check_fits(4_000_000_000, "it")
    with pytest.raises(ConfigError, match=r"has 4 GB of memory, and at least 5 GB are needed for it; use less"):
        memory.check_fits(5_000_000_000, "it; use less")
    monkeypatch.setattr(memory, "machine_memory", lambda: None)
    memory.check_fits(10**15, "it")


def test_the_machine_s_memory_is_what_the_system_says(monkeypatch):
    sizes = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(memory, "os", SimpleNamespace(sysconf=sizes.__getitem__))
    assert memory.machine_memory() == 4_096_000
    del sizes["SC_PAGE_SIZE"]
    assert memory.machine_memory() is None
