"""idiolect track, and the same as options of other commands."""

import json

import pytest

from idiolect.core.errors import StoreError
from idiolect.study.store.store import Store
from tests.report import stores


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
    monkeypatch.setattr("idiolect.cli.track.trackers_of", lambda *_: [one])
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
