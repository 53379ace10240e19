"""Ctrl-C: what a real process says and leaves, and what the piece that does it says of any command."""

import gc
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

from idiolect.cli.stopping import stoppable, this_command
from idiolect.report.progress import COMPILING
from idiolect.study.advice.pieces import RACE, has_pieces
from idiolect.study.store.store import DATABASE, Store
from tests.engine import ROOT
from tests.tiers import second

SMALL = [
    "--data", "synthetic", "--methods", "local", "--set", "data.clients=5", "--set", "data.max_size=40",
    "--set", "data.validation=0.2", "--rounds", "100000", "--eval-every", "1",
]  # fmt: skip
COMMANDS = {
    "compare": ["--jobs", "1", "--set", "local.local_steps=2", "--set", "local.batch_size=5"],
    "sweep": ["--set", "local.rate=0.01,0.1"],
}


def ctrl_c(typed, begun):
    """(exit code, stdout, stderr) of a real process to which Ctrl-C comes as soon as it has begun."""
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
        while not begun():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=240)
    finally:
        process.kill()
    return process.returncode, stdout, stderr


@pytest.mark.parametrize("name", [second(name) if name == "sweep" else name for name in COMMANDS])
def test_ctrl_c_leaves_a_run_and_says_the_command_that_goes_on(tmp_path, name):
    out = tmp_path / "my out"
    typed = [name, *SMALL, *COMMANDS[name], "--out", str(out)]
    goes_on = f"idiolect resume '{out}'" if name == "compare" else shlex.join(["idiolect", *typed])
    stopped = ctrl_c(typed, lambda: any((out / "checkpoints").glob("*.eqx")))
    code, printed, err = stopped
    assert (code, printed) == (130, "")
    assert err.splitlines()[-1] == f"stopped; resume with: {goes_on}"
    assert COMPILING in err.splitlines()[0]
    assert len(err.splitlines()) <= 3  # the line of the first rounds may come before Ctrl-C
    assert {row.status for row in Store(out, create=False).runs()} == {"running"}
    assert not (out / "progress.json").exists()


@pytest.mark.second
def test_ctrl_c_leaves_the_finished_methods_of_an_advice(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"client": np.repeat(["a", "b"], 30), "v": rng.normal(size=60), "label": rng.normal(size=60)}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "my out"
    typed = ["advise", str(tmp_path / "t.csv"), "--methods", "ditto", "--rounds", "1000", "--out", str(out)]
    code, stdout, stderr = ctrl_c(typed, lambda: has_pieces(out))
    assert (code, stdout) == (130, "")
    assert stderr.splitlines()[-1] == f"stopped; resume with: {shlex.join(['idiolect', *typed])}"
    assert "Traceback" not in stderr
    assert has_pieces(out)
    assert {path.name for path in out.iterdir()} == {RACE}


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
    assert stopped(capsys, tmp_path) == "stopped; resume with: idiolect advise 'my own.csv'\n"
    assert stopped(capsys, tmp_path, goes_on=lambda: "that") == "stopped; resume with: that\n"


@pytest.fixture
def interruptible():
    """Ctrl-C does what it does in a command, whatever pytest was started by."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def wait():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_is_heard_while_garbage_is_collected(capsys):
    """An exception in a callback of the collector, as JAX has one, would be printed and lost."""
    pressed = []

    def callback(phase, _):
        if phase == "stop" and not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)
            sum(range(1))  # a signal is handled between two steps of the interpreter

    def collect():
        gc.callbacks.append(callback)  # only now: garbage is collected at any time, and here someone listens
        gc.collect()
        wait()

    try:
        with pytest.raises(typer.Abort), stoppable():
            collect()
    finally:
        gc.callbacks.remove(callback)
    assert pressed
    assert capsys.readouterr().err.startswith("stopped; ")


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_that_other_code_drops_is_heard_again(capsys):
    def drop():
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
            wait()
        wait()

    with pytest.raises(typer.Abort), stoppable():
        drop()
    assert capsys.readouterr().err.startswith("stopped; ")


@pytest.mark.usefixtures("interruptible")
def test_what_cleans_up_after_ctrl_c_is_not_broken_off(monkeypatch):
    monkeypatch.setattr("idiolect.cli.stopping.AGAIN", 0.01)
    ended = []

    def clean():
        try:
            signal.raise_signal(signal.SIGINT)
            wait()
        finally:
            with suppress(ValueError):
                time.sleep(0.1)
                raise ValueError
            time.sleep(0.1)
            ended.append(True)

    with pytest.raises(typer.Abort), stoppable():
        clean()
    assert ended


def test_ctrl_c_before_anything_is_done_is_one_line(commandline, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    Path("own.csv").touch()
    monkeypatch.setattr("idiolect.data.inspection.inspect_table", interrupted)
    code, out, err = commandline("inspect", "own.csv")
    assert (code, out) == (130, "")
    assert err.strip() == "stopped; nothing was kept; begin again with: idiolect inspect own.csv"
