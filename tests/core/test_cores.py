"""A process that may use some of a machine's cores counts those."""

import os
import subprocess
import sys

import pytest

from idiolect.core.cores import cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_only_the_cores_that_a_process_may_use_count():
    code = (
        "import os; os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])\n"
        "from idiolect.core.cores import cores\n"
        "from idiolect.study.advice.together import workers_for\n"
        "print(cores() == [*os.sched_getaffinity(0)], len(cores()), workers_for(range(9)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "1", "1"]


def test_without_affinity_all_of_the_machine_count(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert cores() == [0, 1, 2]
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == [0]
