import subprocess
from pathlib import Path

import jax
import numpy as np

import idiolect.study.provenance as module
from idiolect.study.provenance import provenance


def test_says_versions_and_nothing_private():
    found = provenance()
    assert found["packages"]["jax"] == jax.__version__
    assert found["packages"]["numpy"] == np.__version__
    assert "x" in found["device"]
    assert str(Path.home()) not in str(found)


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
