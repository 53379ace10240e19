"""The time until a command's first round: it is read from what the command prints."""

import pytest

from benchmarks.start import ROOT, seconds_to_the_first_round

SMALL = ["--data", "synthetic", "--methods", "fedavg", "--rounds", "2", "--set", "data.clients=4", "--jobs", "1"]


@pytest.mark.second
def test_the_first_round_is_before_the_end(tmp_path):
    first, end = seconds_to_the_first_round(["compare", *SMALL], ROOT, tmp_path)
    assert 0 < first < end


@pytest.mark.second
def test_a_command_that_fails_is_shown(tmp_path):
    with pytest.raises(SystemExit, match="error: unknown data set 'nothing'"):
        seconds_to_the_first_round(["compare", "--data", "nothing"], ROOT, tmp_path)
