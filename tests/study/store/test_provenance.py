import os
import subprocess
from pathlib import Path

import jax
import numpy as np
import pytest

import idiolect.study.store.provenance as module
from idiolect.study.store.provenance import provenance


def test_says_versions_and_nothing_private():
    found = provenance()
    assert found["packages"]["jax"] == jax.__version__
    assert found["packages"]["numpy"] == np.__version__
    assert "x" in found["device"]
    assert str(Path.home()) not in str(found)


def test_says_what_the_machine_is(tmp_path, monkeypatch):
    found = provenance()
    assert found["cores"] == os.cpu_count()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found["memory_gb"] == pytest.approx(memory / 1e9, abs=0.51)
    named = tmp_path / "cpuinfo"
    named.write_text("processor\t: 0\nmodel name\t: Some  CPU @ 2.0GHz\nprocessor\t: 1\nmodel name\t: b\n")
    (tmp_path / "nameless").write_text("x")
    monkeypatch.setattr("platform.processor", lambda: "other")
    for file, name in ((named, "Some CPU @ 2.0GHz"), (tmp_path / "nameless", "other"), (tmp_path / "no", "other")):
        monkeypatch.setattr(module, "_CPUINFO", file)
        module._cpu.cache_clear()
        assert provenance()["cpu"] == name
    module._cpu.cache_clear()


def test_what_the_system_does_not_say_is_left_out(monkeypatch):
    monkeypatch.delattr("os.sysconf")
    assert provenance()["memory_gb"] is None


def test_git_state_is_this_repositorys_or_nothing(tmp_path, monkeypatch):
    def git(*arguments):
        identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    here = tmp_path / "package" / "provenance.py"
    here.parent.mkdir()
    here.write_text("1")
    monkeypatch.setattr(module, "__file__", str(here))
    module._git.cache_clear()
    assert module._git() is None
    git("init")
    git("commit", "--allow-empty", "-m", "other work")
    module._git.cache_clear()
    assert module._git() is None  # inside somebody else's repository
    git("add", ".")
    git("commit", "-m", "ours")
    module._git.cache_clear()
    clean = module._git()
    assert clean["dirty"] is False
    assert len(clean["commit"]) == 40
    here.write_text("2")
    module._git.cache_clear()
    assert module._git()["dirty"] is True
    module._git.cache_clear()
