"""idiolect watch: what a person meets in the other terminal."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from idiolect.study.store import Store
from tests.engine import ROOT
from tests.report import stores


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A finished comparison, written by hand."""
    folder = tmp_path_factory.mktemp("watched") / "run"
    with Store(folder) as store:
        exp = stores.experiment([{"name": "fedavg"}, {"name": "local"}], seeds=1)
        store.set_fact("experiment", exp.model_dump(mode="json"))
        stores.finished(store, exp, "cell0", "fedavg", 0, stores.TRAINED)
        stores.finished(store, exp, "cell0", "local", 0, stores.local(0))
    return folder


def test_a_finished_run_is_shown_and_that_is_all(commandline, ended):
    code, out, err = commandline("watch", ended)
    assert (code, err) == (0, "")
    assert "40/40 rounds done" in out
    assert "global 72.5 " in out
    assert "local 77.5 " in out
    assert not (ended / "progress.json").exists()


def test_json_is_what_the_page_reads(commandline, ended):
    code, out, err = commandline("watch", ended, "--json")
    assert (code, err) == (0, "")
    assert [line["status"] for line in json.loads(out)["lines"]] == ["done", "done"]


def test_a_run_to_come_is_waited_for_and_nothing_is_made(commandline, tmp_path):
    code, out, _ = commandline("watch", tmp_path / "absent", "--json")
    assert code == 0
    assert json.loads(out)["begun"] is False
    assert list(tmp_path.iterdir()) == []


def test_waiting_is_told_where_nothing_can_be_drawn(commandline, tmp_path, monkeypatch):
    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("idiolect.cli.watch.time.sleep", interrupted)
    code, out, err = commandline("watch", tmp_path / "absent")
    assert (code, err) == (0, "")
    assert out.startswith("waiting for the first round of a run in ")
    assert list(tmp_path.iterdir()) == []


def test_bad_input_is_one_line(commandline, tmp_path, ended):
    (tmp_path / "notes.txt").touch()
    for arguments, words in {
        (str(tmp_path),): "is no folder of runs",
        (str(tmp_path / "notes.txt"),): "is no folder of runs",
        (str(ended), "--port", "8000"): "add --page",
        (str(ended), "--page", "--json"): "leave --page and --port out",
        (str(ended), "--page", "--port", "70000"): "--port",
    }.items():
        code, out, err = commandline("watch", *arguments)
        assert (code in (1, 2), out, err.count("\n")) == (True, "", 1), err
        assert words in err


def test_one_that_was_stopped_says_how_to_go_on(commandline, tmp_path, monkeypatch):
    monkeypatch.setattr("idiolect.report.standing.GRACE", 0.0)
    with Store(tmp_path / "run") as store:
        exp = stores.experiment([{"name": "local"}], seeds=1)
        store.set_fact("experiment", exp.model_dump(mode="json"))
        stores.record(store, stores.start(store, exp, "cell0", "local", 0), 10, stores.local(0)[0])
    code, out, _ = commandline("watch", tmp_path / "run")
    assert code == 0
    assert "stopped" in out
    assert out.endswith(f"no process works on it; go on with: idiolect resume {tmp_path / 'run'}\n")


def test_the_page_of_a_run_that_has_ended_ends_when_nobody_reads(ended):
    command = [sys.executable, "-m", "idiolect", "watch", str(ended), "--page", "--linger", "1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().split()[0]
            with urllib.request.urlopen(f"{url}state.json", timeout=20) as answer:
                assert json.load(answer)["over"] is True
            assert process.wait(timeout=120) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()
    assert not any(path.suffix == ".json" for path in Path(ended).iterdir())
