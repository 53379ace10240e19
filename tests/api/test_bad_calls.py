"""Wrong arguments of the Python API: each call ends with one line that says what was wrong, without a warning."""

import json
import subprocess
import sys

from tests.api.bad_calls import CALLS


def test_each_wrong_argument_is_one_line_that_names_it():
    """In a process of its own, where nothing checks types before idiolect does."""
    run = subprocess.run([sys.executable, "-m", "tests.api.bad_calls"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    outcomes = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(outcomes) == len(CALLS)
    wrong = [
        (expected, outcome)
        for (_, expected), outcome in zip(CALLS, outcomes, strict=True)
        if not outcome.startswith(expected) or "\n" in outcome
    ]
    assert not wrong
