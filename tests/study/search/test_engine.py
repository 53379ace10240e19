"""A sweep that is killed ends, when it is started again, in the table of an undisturbed one, and repeats no work."""

import json
import signal
import sys

import jax
import pytest

from idiolect.cli import main as cli
from idiolect.runtime.program import Program
from tests.engine import content, devices_flags, python
from tests.killed_sweep import RECORDED, SAVED, counted

SETTINGS = {"data.clients": 4, "data.max_size": 30, "data.validation": 0.2, "ditto.local_steps": 2,
            "ditto.batch_size": 5, "ditto.rate": "0.01,0.1,0.3"}  # fmt: skip
SWEEP = ["sweep", "--data", "synthetic", "--methods", "ditto", "--seeds", "2", "--json",
         *(f"--set={key}={value}" for key, value in SETTINGS.items())]  # fmt: skip
# Settings x seeds: 6 runs in one portion, evaluated in rounds 2, 4 and 6.
GRID = [*SWEEP, "--rounds", "6", "--eval-every", "2", "--sampling", "binomial", "--cohort", "2.5"]
# 6 runs for 2 rounds, then the best setting's 2 runs for 2 more; every round is evaluated.
HALVING = [*SWEEP, "--rounds", "4", "--eval-every", "1", "--search", "halving", "--eta", "2"]


def done(log):
    return sum(json.loads(line) for line in log.read_text().splitlines())


def killed(arguments, out, instant, count):
    """Rounds x runs that the command does in a process of its own, until it is killed."""
    log = out.with_suffix(".log")
    log.write_text("")
    devices = devices_flags(jax.local_device_count())
    program = ["-m", "tests.killed_sweep", log, instant, count]
    ended = python(*program, *arguments, "--out", out, XLA_FLAGS=devices)
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-3000:]
    assert not (out / "sweep.csv").exists()
    return done(log)


@pytest.fixture
def whole(monkeypatch, capsys, tmp_path):
    """Runs the command to its end: (the JSON that it prints, rounds x runs that it does)."""

    def run(arguments, out):
        log = out.with_suffix(".log")
        log.write_text("")
        with monkeypatch.context() as patched:
            patched.setattr(Program, "advance", counted(log))
            patched.setattr(sys, "argv", ["idiolect", *arguments, "--out", str(out)])
            with pytest.raises(SystemExit):
                cli.main()
        return json.loads(capsys.readouterr().out), done(log)

    return run


def assert_same(out, undisturbed):
    assert (out / "sweep.csv").read_bytes() == (undisturbed / "sweep.csv").read_bytes()
    assert (out / "chosen.toml").read_bytes() == (undisturbed / "chosen.toml").read_bytes()
    assert content(out) == content(undisturbed)  # every client's score in every evaluated round, to the last bit


@pytest.mark.second
def test_a_killed_grid_of_settings_and_seeds_goes_on_to_the_same_table(tmp_path, whole):
    _, rounds = whole(GRID, tmp_path / "whole")
    assert rounds == 6 * 6
    # Killed in the evaluation of round 4, when 4 of the 6 runs have their score there, and 3 their state.
    assert killed(GRID, tmp_path / "killed", RECORDED, 6 + 4) == 6 * 4
    said, rounds = whole(GRID, tmp_path / "killed")
    assert rounds == 3 * 2 + 6 * 2  # the three that were not kept from round 2, then all from round 4
    assert_same(tmp_path / "killed", tmp_path / "whole")
    assert len(said["settings"]) == 3


@pytest.mark.second
def test_killed_halving_goes_on_in_the_middle_of_a_rung(tmp_path, whole):
    _, rounds = whole(HALVING, tmp_path / "whole")
    assert rounds == 6 * 2 + 2 * 2
    # Killed at the end of the first rung: three runs have their score and their state.
    assert killed(HALVING, tmp_path / "killed", SAVED, 6 + 3) == 6 * 2
    # Goes on, and is killed in the second rung: the three others' round 2, then round 3 of the best setting's runs.
    assert killed(HALVING, tmp_path / "killed", RECORDED, 3 + 1) == 3 * 1 + 2 * 1
    said, rounds = whole(HALVING, tmp_path / "killed")
    assert rounds == 2 * 1 + 2 * 1  # neither state of round 3 was saved
    assert_same(tmp_path / "killed", tmp_path / "whole")
    assert said["budget"] == {"ditto": {"settings": 3, "rounds x runs": 6 * 2 + 2 * 2}}
