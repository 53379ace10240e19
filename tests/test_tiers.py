"""Every file of the second tier is in one of the shares that `.ci/run` runs in turn."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from jaxtyping import TypeCheckError
from jaxtyping import config as checks

from idiolect.client.samples import total_of
from tests.conftest import CHECKED, pytest_collection_modifyitems, pytest_runtest_setup
from tests.test_structure import TESTS
from tests.tiers import LONG, LONGEST_SECOND, REPRESENTATIVE, by_method, share


def test_ten_shares_are_the_whole_second_tier():
    files = [f"f{i:02}" for i in range(23)]
    shares = [share(files, f"{commit}/10") for commit in range(40, 50)]
    assert sorted(file for part in shares for file in part) == files
    assert max(map(len, shares)) == 3
    assert (share(files, "all"), share(files, "none")) == ({*files}, set())


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
    ("second", "expected"),
    [("none", ["b", "a"]), ("all", ["b", "a", "c", "d"]), ("0/2", ["b", "a", "c"]), ("13/2", ["b", "a", "d"])],
)
def test_a_run_has_the_first_tier_with_its_long_files_first_and_the_share_of_the_second(second, expected):
    files = {"a": "core/test_tree.py", "b": LONG[0], "c": "runtime/test_a.py", "d": "runtime/test_b.py"}
    items = [Item(file, name in "cd") for name, file in files.items()]
    names = {item.nodeid: name for item, name in zip(items, files, strict=True)}
    all_items, dropped = [*items], []
    hook = SimpleNamespace(pytest_deselected=lambda items: dropped.extend(items))
    options = {"--second": second, "--checked": "1/2"}
    config = SimpleNamespace(getoption=options.get, hook=hook, stash={})
    pytest_collection_modifyitems(config, items)
    assert config.stash[CHECKED] == share([str(item.path) for item in all_items], "1/2")
    assert [names[item.nodeid] for item in items] == expected
    assert sorted(names[item.nodeid] for item in dropped) == sorted({*"abcd"} - {*expected})


@pytest.mark.parametrize("chosen", [True, False])
def test_types_and_shapes_are_checked_in_the_files_that_were_chosen(request, chosen):
    """A function of the package is given a number where it takes an array."""
    file = str(request.node.path)
    item = SimpleNamespace(path=file, config=SimpleNamespace(stash={CHECKED: {file} if chosen else {"another.py"}}))
    before = checks.jaxtyping_disable
    pytest_runtest_setup(item)
    try:
        with pytest.raises(TypeCheckError) if chosen else nullcontext():
            assert total_of(np.ones((2, 2), np.int32)) == 4
    finally:
        checks.update("jaxtyping_disable", before)
