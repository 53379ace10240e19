"""constraints.txt fits pyproject.toml, and the scripts of .ci that install other versions can be started."""

import shutil
import subprocess
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LINES = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
LOCKED = [Requirement(line) for line in LINES if not line.startswith("#")]


def test_the_lock_names_each_version_once_and_nothing_else():
    assert all(str(one.specifier).startswith("==") and one.url is None and not one.extras for one in LOCKED)
    names = [canonicalize_name(one.name) for one in LOCKED]
    assert len(set(names)) == len(names) > 100
    assert "idiolect" not in names


def test_the_locked_versions_install_on_every_python_that_is_allowed():
    """One that needed Python 3.11.5 could not be installed with Debian's Python 3.11.2."""
    oldest = PROJECT["requires-python"].removeprefix(">=")
    for one in LOCKED:
        with suppress(PackageNotFoundError):  # of another system, or of an extra
            installed = distribution(one.name)
            needed = installed.metadata.get("Requires-Python")  # [] may raise KeyError
            if one.specifier.contains(installed.version):  # `.ci/versions` installs others
                assert needed is None or SpecifierSet(needed).contains(f"{oldest}.0"), one


@pytest.mark.parametrize("group", ["dependencies", "dev", "docs"])
def test_the_locked_versions_are_within_the_ranges(group):
    texts = PROJECT["dependencies"] if group == "dependencies" else PROJECT["optional-dependencies"][group]
    locked = {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in LOCKED}
    for wanted in map(Requirement, texts):
        if wanted.name != "idiolect":
            assert wanted.specifier.contains(locked[canonicalize_name(wanted.name)]), wanted


def test_every_dependency_has_a_lowest_version():
    """`.ci/versions` installs it."""
    for one in map(Requirement, PROJECT["dependencies"]):
        assert [part.operator for part in one.specifier].count(">=") == 1, one


def script(name, *arguments):
    return subprocess.run([ROOT / ".ci" / name, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--no-such"], "unknown argument '--no-such'; known: --folder FOLDER"),
        (["--only", "middle"], "--only middle: choose lowest or newest"),
        (["--folder"], "--folder needs a folder"),
    ],
)
def test_versions_says_what_it_does_not_know(arguments, said):
    ended = script("versions", *arguments)
    assert ended.returncode != 0
    assert said in ended.stderr


@pytest.mark.parametrize("name", ["run", "versions", "weekly"])
def test_the_scripts_can_be_read_by_bash(name):
    assert subprocess.run(["bash", "-n", ROOT / ".ci" / name], timeout=60).returncode == 0
    assert (ROOT / ".ci" / name).stat().st_mode & 0o111


STUB = """#!/bin/sh
echo "$@" >> "{log}"
case "$2" in pytest) exit {rc} ;; esac
[ "$1" = -c ] && echo "jax 0.8.1"
exit 0
"""


@pytest.mark.skipif(shutil.which("python3.11") is None, reason="no python3.11 on the path")
@pytest.mark.parametrize(("rc", "state"), [(0, "passed"), (1, "FAILED")])
@pytest.mark.parametrize("arguments", [(), ("--", "tests/core/test_tree.py", "-q")], ids=["make test", "a file"])
def test_an_environment_gets_the_lowest_versions_and_a_line(rc, state, arguments, tmp_path):
    """With a Python in the environment that only notes how it is called."""
    python, log = tmp_path / "lowest" / "bin" / "python", tmp_path / "log"
    python.parent.mkdir(parents=True)
    python.write_text(STUB.format(log=log, rc=rc))
    python.chmod(0o755)
    ended = script("versions", "--folder", str(tmp_path), "--only", "lowest", *arguments)
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (rc, f"lowest: {version()}, jax 0.8.1: {state}")
    install, test, *_ = log.read_text().splitlines()
    assert install.endswith(f"--constraint {tmp_path}/lowest.txt --editable .[dev]")
    assert test == "-m pytest tests/core/test_tree.py -q" if arguments else test.startswith("-m pytest -")
    lowest = (tmp_path / "lowest.txt").read_text().splitlines()
    assert lowest[1] == lowest[0].replace("jax", "jaxlib")
    assert len(lowest) == len(PROJECT["dependencies"]) + 1


def version():
    return subprocess.run(["python3.11", "-V"], capture_output=True, text=True).stdout.strip()
