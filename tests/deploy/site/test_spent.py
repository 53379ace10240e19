"""Counts of computed replies survive a crash."""

import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.site.spent import Spent


def test_counts_add_up_on_disk(tmp_path):
    folder = tmp_path / "run"
    assert Spent.load(folder) == Spent(rounds=0, evaluations=0)
    Spent.load(folder).add(folder, rounds=1)
    Spent.load(folder).add(folder, rounds=1)
    Spent.load(folder).add(folder, evaluations=1)
    assert Spent.load(folder) == Spent(rounds=2, evaluations=1)


@pytest.mark.parametrize("content", [b"", b"{", b'{"rounds": -1}', b'{"rounds": 1, "more": 2}'])
def test_a_damaged_file_is_no_fresh_start(tmp_path, content):
    (tmp_path / "spent.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"cannot read .*spent.json; restore it"):
        Spent.load(tmp_path)
