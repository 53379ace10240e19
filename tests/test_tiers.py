"""Every file is in one of the shares that `.ci/run` runs in turn, and a run has the tier that it asks for."""

import subprocess
import sys
from argparse import ArgumentTypeError
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from idiolect.client.samples import total_of
from tests.conftest import pytest_collection_modifyitems, pytest_ignore_collect
from tests.test_structure import TESTS
from tests.tiers import LONG, LONGEST_SECOND, REPRESENTATIVE, by_method, share, share_name


def test_ten_shares_are_all_files():
    files = [f"f{i:02}" for i in range(23)]
    shares = [share(files, f"{commit}/10") for commit in range(40, 50)]
    assert sorted(file for part in shares for file in part) == files
    assert max(map(len, shares)) == 3
    assert share(files, None) == {*files}


@pytest.mark.parametrize("text", ["foo", "3", "3/0", "-1/10", "1/2/3", ""])
def test_a_share_is_named_as_k_of_n(text: str):
    assert share_name("13/10") == "13/10"
    with pytest.raises(ArgumentTypeError, match="is not of the form K/N"):
        share_name(text)


def test_two_of_the_longest_files_are_in_each_share():
    files = [f"{TESTS}/{file}" for file in LONGEST_SECOND] + [f"{TESTS}/a/test_{i}.py" for i in range(40)]
    shares = [share(files, f"{commit}/10") for commit in range(10)]
    assert sorted(file for part in shares for file in part) == sorted(files)
    assert [sum(file.endswith(LONGEST_SECOND) for file in part) for part in shares] == [2] * 10


def test_a_matrix_of_methods_has_its_representatives_in_the_first_tier():
    local, fedu = by_method(["local", "fedu"])
    assert fedu == "fedu" in REPRESENTATIVE
    assert [mark.name for mark in local.marks] == ["second"]
    assert local.values == ("local",)


def test_the_long_files_exist():
    assert all((TESTS / file).is_file() for file in (*LONG, *LONGEST_SECOND))


class Item:
    """A test as pytest collects it."""

    def __init__(self, file, second):
        self.path, self.nodeid, self.second = TESTS / file, f"tests/{file}::test", second

    def get_closest_marker(self, name):
        return "mark" if name == "second" and self.second else None


@pytest.mark.parametrize(("tier", "expected"), [("first", ["b", "a"]), ("all", ["b", "a", "c", "d"])])
def test_a_run_has_its_tier_and_long_files_come_first(tier, expected):
    files = {"a": "core/test_tree.py", "b": LONG[0], "c": "runtime/test_a.py", "d": "runtime/test_b.py"}
    items = [Item(file, name in "cd") for name, file in files.items()]
    names = {item.nodeid: name for item, name in zip(items, files, strict=True)}
    dropped = []
    hook = SimpleNamespace(pytest_deselected=lambda items: dropped.extend(items))
    config = SimpleNamespace(getoption={"--tier": tier}.get, hook=hook)
    pytest_collection_modifyitems(config, items)
    assert [names[item.nodeid] for item in items] == expected
    assert sorted(names[item.nodeid] for item in dropped) == sorted({*"abcd"} - {*expected})


def test_each_file_is_in_one_share_and_the_run_without_that_share_has_all_others():
    files = sorted(TESTS.rglob("test_*.py"))
    folders = sorted({file.parent for file in files})

    def chosen(only, without):
        config = SimpleNamespace(getoption={"--share": only, "--without-share": without}.get)
        assert not any(pytest_ignore_collect(folder, config) for folder in folders)
        return {file for file in files if not pytest_ignore_collect(file, config)}

    shares = [chosen(f"{1070 + k}/10", None) for k in range(10)]
    assert sorted(file for part in shares for file in part) == files
    assert chosen(None, "1073/10") == {*files} - shares[3]
    assert chosen(None, None) == {*files}


def test_types_and_shapes_are_checked_unless_the_run_leaves_that_out(request):
    """A function of the package is given a matrix where it takes a vector."""
    with nullcontext() if request.config.getoption("--unchecked") else pytest.raises(TypeCheckError):
        assert total_of(np.ones((2, 2), np.int32)) == 4


@pytest.mark.second
def test_types_are_checked_where_a_folders_conftest_is_loaded_first():
    """Of named files pytest loads the conftest.py of their folders before it parses the options."""
    own = "tests/test_tiers.py::test_types_and_shapes_are_checked_unless_the_run_leaves_that_out"
    arguments = f"-q -p no:cacheprovider tests/report/view/test_leaders.py {own} -k types_and_shapes".split()
    command = [sys.executable, "-m", "pytest", *arguments]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
