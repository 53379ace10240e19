"""Only the newest call may change a site's state, across threads and processes."""

import json
import subprocess
import sys
import threading
import time

import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.site.fence import AHEAD, Fence


def test_older_calls_are_refused_and_newer_ones_pass(tmp_path):
    fence = Fence(tmp_path / "state")
    for ticket in ((1, 1), (1, 1), (1, 2), (2, 1)):
        with fence.enter(ticket, 1):
            pass
    for ticket in ((1, 9), (2, 0)):
        with pytest.raises(StoreError, match="is late"), fence.enter(ticket, 1):
            pass
    with pytest.raises(StoreError, match="is late"), Fence(tmp_path / "state").enter((1, 9), 1):
        pass


def test_a_number_far_ahead_locks_nobody_out(tmp_path):
    fence, now = Fence(tmp_path), int(time.time())
    for far in (now + 2 * AHEAD, 10**12):
        with pytest.raises(StoreError, match="compare the clocks"), fence.enter((far, 1), 1):
            pass
    for ticket in ((now, 1), (now + 60, 1)):
        with fence.enter(ticket, 1):
            pass
    (tmp_path / "fence.json").write_text(json.dumps({"job": 10**12, "call": 1}))  # of an older idiolect
    with fence.enter((now, 1), 1):
        pass


def test_one_at_a_time(tmp_path):
    fence, inside, most = Fence(tmp_path), [], []

    def work():
        with fence.enter((1, 1), 5):
            inside.append(1)
            most.append(len(inside))
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


def test_another_process_is_waited_for_and_then_told(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from idiolect.deploy.site.fence import Fence\n"
        "with Fence(Path(sys.argv[1])).enter((1, 1), 5):\n    print('in', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == b"in\n"
        with (
            pytest.raises(StoreError, match="another process works"),
            Fence(tmp_path).enter((1, 1), 0.1),
        ):
            pass
    finally:
        other.kill()
        other.wait()
    with Fence(tmp_path).enter((1, 1), 5):  # the system has released the lock of the dead
        pass


@pytest.mark.parametrize("text", ["{", "[" * 100_000])
def test_a_file_that_cannot_be_read_is_told(tmp_path, text):
    (tmp_path / "fence.json").write_text(text)
    with pytest.raises(StoreError, match="cannot read"), Fence(tmp_path).enter((1, 1), 1):
        pass
