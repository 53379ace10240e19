"""Real flags and made-up ones; XLA is asked in child processes, since this one has read its flags."""

import json
import subprocess
import sys
from importlib.metadata import version

import pytest

from idiolect.runtime import xla_flags
from idiolect.runtime.xla_flags import known_flags

KNOWN, OTHER = "--xla_force_host_platform_device_count=2", "--xla_backend_optimization_level=1"
UNKNOWN, ALSO_UNKNOWN = "--xla_no_such_flag=1", "--xla_gone=false"


@pytest.fixture
def asked(monkeypatch):
    """The flags of every child process, in order."""
    calls, run = [], subprocess.run

    def counted(*arguments, **options):
        calls.append(options["env"]["XLA_FLAGS"].split())
        return run(*arguments, **options)

    monkeypatch.setattr(subprocess, "run", counted)
    return calls


def test_only_flags_that_this_xla_knows_are_left_in_their_order(asked):
    assert known_flags([UNKNOWN, OTHER, ALSO_UNKNOWN, KNOWN], None) == [OTHER, KNOWN]
    assert asked == [[UNKNOWN, OTHER, ALSO_UNKNOWN, KNOWN], [OTHER, KNOWN]]  # it names all unknown ones at once
    assert known_flags([UNKNOWN], None) == known_flags([], None) == []
    assert len(asked) == 3


def test_a_flag_is_asked_of_once_per_version(tmp_path, asked, monkeypatch):
    folder = tmp_path / "new" / "cache"
    assert known_flags([KNOWN, UNKNOWN], folder) == [KNOWN]
    (file,) = folder.iterdir()
    assert file.name == f"xla-flags-{version('jaxlib')}.json"
    assert json.loads(file.read_text()) == {KNOWN: True, UNKNOWN: False}
    calls = len(asked)
    assert known_flags([UNKNOWN, KNOWN], folder) == [KNOWN]
    assert len(asked) == calls
    assert known_flags([KNOWN, OTHER], folder) == [KNOWN, OTHER]
    assert asked[calls:] == [[OTHER]]
    assert json.loads(file.read_text()) == {KNOWN: True, UNKNOWN: False, OTHER: True}
    monkeypatch.setattr(xla_flags, "version", lambda name: "99")
    assert known_flags([KNOWN], folder) == [KNOWN]
    assert asked[calls + 1 :] == [[KNOWN]]


@pytest.mark.parametrize("content", ["", "[1]", '{"--xla'])
def test_a_damaged_file_is_written_anew(tmp_path, content):
    file = tmp_path / f"xla-flags-{version('jaxlib')}.json"
    file.write_text(content)
    assert known_flags([KNOWN], tmp_path) == [KNOWN]
    assert json.loads(file.read_text()) == {KNOWN: True}


def test_without_an_answer_no_flag_is_known_and_nothing_is_kept(tmp_path, monkeypatch):
    """No Python to start, and one that ends for another reason than an unknown flag: here a value of a wrong kind."""
    assert known_flags(["--xla_llvm_disable_expensive_passes=maybe"], tmp_path) == []
    monkeypatch.setattr(sys, "executable", str(tmp_path / "absent"))
    assert known_flags([KNOWN], tmp_path) == []
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_to_changes_no_answer(tmp_path):
    (tmp_path / "file").write_text("")
    assert known_flags([KNOWN, UNKNOWN], tmp_path / "file") == [KNOWN]
