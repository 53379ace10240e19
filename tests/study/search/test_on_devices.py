"""The devices of one process divide a sweep's runs; several processes are refused."""

import json

import numpy as np
import pytest

from tests.engine import devices_flags, python


def table(file, devices):
    """The table of the sweep in a process with so many devices."""
    ended = python("-m", "tests.sweep_on_devices", file, XLA_FLAGS=devices_flags(devices))
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(file.read_text())


@pytest.mark.second
def test_eight_devices_give_the_table_of_one(tmp_path):
    eight, one = (table(tmp_path / f"{count}.json", count) for count in (8, 1))
    # Nine runs are compiled and done, then three have their test scores left: no more devices than shorten the work.
    assert eight["devices"] == [5, 5, 3]
    assert one["devices"] == [1, 1, 1]
    assert eight["chosen"] == one["chosen"]
    for column in ("validation", "test"):
        np.testing.assert_allclose(
            np.array(eight[column], float), np.array(one[column], float), atol=1e-6, err_msg=column
        )


@pytest.mark.second
def test_a_sweep_in_several_processes_ends_with_one_line_and_no_folder(tmp_path):
    sweep = ["sweep", "--data", "synthetic", "--methods", "fedavg", "--set", "fedavg.rate=0.1,0.2"]
    ended = python("-m", "idiolect", "launch", "-n", "2", "--", *sweep, "--out", tmp_path / "out")
    assert ended.returncode == 1
    said = [line for line in ended.stderr.splitlines() if "idiolect" in line or "error" in line.lower()]
    assert len(said) == 1, ended.stderr
    assert "a sweep runs in one process, whose devices divide its runs" in said[0]
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "out").exists()
