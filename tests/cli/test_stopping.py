"""Ctrl-C: what a real process says and leaves, and what the piece that does it says of any command."""

import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
import typer

from idiolect.cli.stopping import stoppable, this_command
from idiolect.study.store import DATABASE, Store
from tests.engine import ROOT

SMALL = [
    "--data", "synthetic", "--methods", "local", "--set", "data.clients=5", "--set", "data.max_size=40",
    "--set", "data.validation=0.2", "--rounds", "100000", "--eval-every", "1",
]  # fmt: skip
COMMANDS = {
    "compare": ["--jobs", "1", "--set", "local.local_steps=2", "--set", "local.batch_size=5"],
    "sweep": ["--set", "local.rate=0.01,0.1"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_leaves_a_run_and_says_the_command_that_goes_on(tmp_path, name):
    out = tmp_path / "my out"
    typed = [name, *SMALL, *COMMANDS[name], "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "idiolect", *typed],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background jobs ignore Ctrl-C, and their children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        end = time.monotonic() + 180
        while not any((out / "checkpoints").glob("*.eqx")):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=240)
    finally:
        process.kill()
    goes_on = f"idiolect resume '{out}'" if name == "compare" else shlex.join(["idiolect", *typed])
    assert (process.returncode, stdout, stderr) == (130, "", f"stopped; go on with: {goes_on}\n")
    assert {row.status for row in Store(out, create=False).runs()} == {"running"}
    assert not (out / "progress.json").exists()


def stopped(capsys, *arguments, **options):
    with pytest.raises(typer.Abort), stoppable(*arguments, **options):
        raise KeyboardInterrupt
    return capsys.readouterr().err


def test_a_folder_with_runs_goes_on_and_without_one_the_command_begins_again(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["idiolect", "advise", "my own.csv"])
    assert this_command() == "idiolect advise 'my own.csv'"
    again = "stopped; nothing was kept; begin again with: idiolect advise 'my own.csv'\n"
    assert stopped(capsys) == stopped(capsys, tmp_path) == again
    (tmp_path / DATABASE).touch()
    assert stopped(capsys, tmp_path) == "stopped; go on with: idiolect advise 'my own.csv'\n"
    assert stopped(capsys, tmp_path, goes_on=lambda: "that") == "stopped; go on with: that\n"


def test_ctrl_c_before_anything_is_done_is_one_line(commandline, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("idiolect.cli.inspect.inspect_table", interrupted)
    code, out, err = commandline("inspect", "own.csv")
    assert (code, out) == (130, "")
    assert err.strip() == "stopped; nothing was kept; begin again with: idiolect inspect own.csv"
