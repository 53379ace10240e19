"""Every file of the second tier is in one of the shares that `.ci/run` runs in turn."""

import pytest

from tests.test_structure import TESTS
from tests.tiers import LONG, REPRESENTATIVE, by_method, share


def test_ten_shares_are_the_whole_second_tier():
    files = [f"f{i:02}" for i in range(23)]
    shares = [share(files, f"{commit}/10") for commit in range(40, 50)]
    assert sorted(file for part in shares for file in part) == files
    assert max(map(len, shares)) == 3
    assert (share(files, "all"), share(files, "none")) == ({*files}, set())


def test_a_matrix_of_methods_has_its_representatives_in_the_first_tier():
    local, fedu = by_method(["local", "fedu"])
    assert fedu == "fedu" in REPRESENTATIVE
    assert [mark.name for mark in local.marks] == ["second"]
    assert local.values == ("local",)


def test_the_long_files_exist():
    assert all((TESTS / file).is_file() for file in LONG)


@pytest.mark.second
def test_this_one_is_of_the_second_tier():
    """So a run of the first tier never has it, whatever else changes."""
