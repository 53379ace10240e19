"""Every file is in one of the shares that `.ci/run` runs in turn, and a run has the tier that it asks for."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from idiolect.client.samples import total_of
from tests.conftest import pytest_collection_modifyitems
from tests.test_structure import TESTS
from tests.tiers import LONG, LONGEST_SECOND, REPRESENTATIVE, by_method, share


def test_ten_shares_are_all_files():
    files = [f"f{i:02}" for i in range(23)]
    shares = [share(files, f"{commit}/10") for commit in range(40, 50)]
    assert sorted(file for part in shares for file in part) == files
    assert max(map(len, shares)) == 3
    assert share(files, None) == {*files}


def test_no_two_of_the_longest_files_are_in_one_share():
    files = [f"{TESTS}/{file}" for file in LONGEST_SECOND] + [f"{TESTS}/a/test_{i}.py" for i in range(40)]
    shares = [share(files, f"{commit}/10") for commit in range(10)]
    assert sorted(file for part in shares for file in part) == sorted(files)
    assert [sum(file.endswith(LONGEST_SECOND) for file in part) for part in shares] == [1] * 8 + [0] * 2


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


@pytest.mark.parametrize(
    ("tier", "which", "without", "expected"),
    [
        ("first", None, None, ["b", "a"]),
        ("all", None, None, ["b", "a", "c", "d"]),
        ("all", "0/2", None, ["a", "c"]),
        ("all", "13/2", None, ["b", "d"]),
        ("first", "13/2", None, ["b"]),
        ("first", None, "13/2", ["a"]),
        ("all", None, "0/2", ["b", "d"]),
    ],
)
def test_a_run_has_its_tier_of_its_share_of_the_files_and_long_files_come_first(tier, which, without, expected):
    files = {"a": "core/test_tree.py", "b": LONG[0], "c": "runtime/test_a.py", "d": "runtime/test_b.py"}
    items = [Item(file, name in "cd") for name, file in files.items()]
    names = {item.nodeid: name for item, name in zip(items, files, strict=True)}
    dropped = []
    hook = SimpleNamespace(pytest_deselected=lambda items: dropped.extend(items))
    config = SimpleNamespace(getoption={"--tier": tier, "--share": which, "--without-share": without}.get, hook=hook)
    pytest_collection_modifyitems(config, items)
    assert [names[item.nodeid] for item in items] == expected
    assert sorted(names[item.nodeid] for item in dropped) == sorted({*"abcd"} - {*expected})


def test_types_and_shapes_are_checked_unless_the_run_leaves_that_out(request):
    """A function of the package is given a matrix where it takes a vector."""
    with nullcontext() if request.config.getoption("--unchecked") else pytest.raises(TypeCheckError):
        assert total_of(np.ones((2, 2), np.int32)) == 4
