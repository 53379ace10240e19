"""What a hub has used of an approved study is counted once, durably, over threads and processes."""

import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.site.ledger import FILE, Ledger


def test_equal_requests_count_once_and_no_more_than_the_limit(tmp_path):
    ledger = Ledger(tmp_path)
    assert [ledger.asked("s", "r", "rounds", text, 2) for text in "aabacb"] == [True, True, True, True, False, True]
    assert ledger.asked("s", "r", "evaluations", "a", 1)
    assert ledger.asked("s", "q", "rounds", "a", 1)
    assert Ledger(tmp_path).counts("s", "rounds") == {"r": 2, "q": 1}


def test_the_first_value_is_kept_until_it_is_forgotten_and_counts_stay(tmp_path):
    ledger = Ledger(tmp_path)
    assert ledger.pinned("s", "r", "kind") is None
    assert ledger.counts("s", "rounds") == {}
    assert not (tmp_path / FILE).exists()
    assert (ledger.pin("s", "r", "kind", "a"), ledger.pin("s", "r", "kind", "b")) == ("a", "a")
    ledger.asked("s", "r", "rounds", "x", 1)
    ledger.unpin("other")
    assert ledger.pinned("s", "r", "kind") == "a"
    ledger.unpin("s")
    assert ledger.pinned("s", "r", "kind") is None
    assert not ledger.asked("s", "r", "rounds", "y", 1)


def test_many_at_once_get_no_more_than_the_limit(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        taken = [*pool.map(lambda n: Ledger(tmp_path).asked("s", "r", "rounds", str(n), 5), range(24))]
    assert sum(taken) == 5


def test_only_the_owner_reads_it_and_another_process_sees_it(tmp_path):
    Ledger(tmp_path).asked("s", "r", "rounds", "a", 1)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    code = "import sys, pathlib; from idiolect.deploy.site.ledger import Ledger; "
    code += "print(Ledger(pathlib.Path(sys.argv[1])).asked('s', 'r', 'rounds', 'b', 1), 'jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "False"


def test_a_damaged_file_is_one_line(tmp_path):
    (tmp_path / FILE).write_bytes(b"no database " * 99)
    for use in (lambda one: one.asked("s", "r", "rounds", "a", 1), lambda one: one.pinned("s", "r", "kind")):
        with pytest.raises(StoreError, match="so nothing is sent: restore it from a backup") as error:
            use(Ledger(tmp_path))
        assert "\n" not in str(error.value)
