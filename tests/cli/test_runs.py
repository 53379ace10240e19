"""`idiolect report`: a page of folders, and one line for what cannot be one."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from idiolect.core.errors import StoreError
from idiolect.study.store.store import Store
from tests.engine import ROOT
from tests.report import stores
from tests.report.html.made import compared


@pytest.fixture
def runs(tmp_path):
    compared(tmp_path / "runs").store.close()
    return tmp_path / "runs"


def test_the_page_is_named(commandline, runs, tmp_path):
    code, out, err = commandline("report", str(runs))
    assert (code, err) == (0, "")
    assert out == f"page: {runs / 'report.html'}\n"
    code, out, err = commandline("report", str(runs), str(runs), "-o", str(tmp_path / "page.html"))
    assert (code, err) == (0, "")
    assert (tmp_path / "page.html").read_text() == (runs / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        ([], "Missing argument 'RUN...'", 2),
        (["nosuch"], "no such folder: 'nosuch'", 1),
        (["empty"], "holds neither runs nor a table.csv", 1),
        (["file"], "'file' is a file; name the folder of a run", 1),
        ([""], "it must name a folder", 2),
        (["runs", "-o", "no/page.html"], "there is no folder 'no'", 1),
        (["runs", "-o", "empty"], "it is a folder", 1),
        (["runs", "nosuch"], "no such folder: 'nosuch'", 1),
        (["broken"], "broken", 1),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(commandline, runs, tmp_path, monkeypatch, arguments, words, code):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "idiolect.sqlite").write_text("no database")
    before = sorted(tmp_path.rglob("*"))
    exit_code, out, err = commandline("report", *arguments)
    assert (exit_code, out, err.count("\n")) == (code, "", 1), err
    assert words in err
    assert [path for path in sorted(tmp_path.rglob("*")) if "sqlite-" not in path.name] == before


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

    monkeypatch.setattr("idiolect.cli.runs.time.sleep", interrupted)
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
    assert out.endswith(f"no process works on it; resume with: idiolect resume {tmp_path / 'run'}\n")


@pytest.mark.second
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


class Made:
    where = "made --here"
    closed = 0
    taken: tuple[str, ...] = ()

    def take(self, record, measured, final):
        self.taken = (*self.taken, record.row.id)

    def finish(self, folder, experiment):
        if experiment == "full":
            raise StoreError("it is full")

    def close(self):
        self.closed += 1


@pytest.fixture
def made(monkeypatch):
    one = Made()
    monkeypatch.setattr("idiolect.report.trackers.tracking.trackers_of", lambda *_: [one])
    return one


def folder(tmp_path, name="toy"):
    with Store(tmp_path / "run") as store:
        exp = stores.experiment([{"name": "local"}], seeds=1)
        store.set_fact("experiment", {**exp.model_dump(mode="json"), "name": name})
        stores.finished(store, exp, "cell0", "local", 0, stores.local(0))
    return tmp_path / "run"


def test_runs_are_sent_and_it_says_where_to_see_them(commandline, tmp_path, made):
    code, out, err = commandline("track", folder(tmp_path), "--mlflow", "there")
    assert (code, out, err) == (0, "1 run sent; see: made --here\n", "")
    assert (made.taken, made.closed) == (("cell0/local/seed0",), 1)
    code, out, err = commandline("track", tmp_path / "run", "--tensorboard", "there", "--json")
    assert (code, json.loads(out), err) == (0, {"runs": 1, "see": ["made --here"]}, "")


def test_what_cannot_be_sent_is_one_line(commandline, tmp_path, made):
    for arguments, words in {
        (str(folder(tmp_path, "full")), "--mlflow", "there"): "error: it is full",
        (str(tmp_path / "absent"), "--mlflow", "there"): "no runs in",
        (str(tmp_path / "run"),): "name where to: --mlflow FOLDER or an address, or --tensorboard FOLDER",
    }.items():
        code, out, err = commandline("track", *arguments)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert words in err
    assert made.closed == 2


def test_a_library_that_is_missing_is_told_before_anything_runs(commandline, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorboardX", None)
    out = tmp_path / "out"
    code, _, err = commandline("demo", "--out", out, "--tensorboard", tmp_path / "events")
    assert (code, err.count("\n")) == (1, 1)
    assert "pip install 'idiolect[tensorboard]'" in err
    assert list(tmp_path.iterdir()) == []
