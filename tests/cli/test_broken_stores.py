"""Folders of runs that are cut, altered or of another version: one line that names the file, and nothing is lost."""

import shutil
import sqlite3

import numpy as np
import pytest

from idiolect.runtime.evaluate import ClientScores
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import comparison_of
from idiolect.study.store.store import DATABASE, Store

SQL = {
    "bad JSON in facts": "UPDATE facts SET value = '{'",
    "a number for an experiment": "UPDATE facts SET value = '3'",
    "a list for an experiment": "UPDATE facts SET value = '[]'",
    "another experiment": """UPDATE facts SET value = '{"name": 3}'""",
    "bad JSON in a run": "UPDATE runs SET config = '{'",
    "deep JSON in a run": f"UPDATE runs SET config = '{'[' * 5000}'",
    "a list for a configuration": "UPDATE runs SET config = '[]'",
    "a number for a provenance": "UPDATE runs SET provenance = '3'",
    "a seed that is a text": "UPDATE runs SET seed = 'x'",
    "a round that is a text": "UPDATE runs SET round = 'many'",
    "seconds that are a text": "UPDATE runs SET seconds = 'fast'",
    "a later column": "ALTER TABLE runs ADD COLUMN later TEXT",
    "a later column of metrics": "ALTER TABLE metrics ADD COLUMN later TEXT",
    "a column less": "ALTER TABLE evaluations DROP COLUMN samples",
    "a table less": "DROP TABLE metrics",
    "a later version": "PRAGMA user_version = 3",
    "no version": "PRAGMA user_version = 0",
    "a cut count": "UPDATE evaluations SET count_by_client = x'00'",
    "a cut loss": "UPDATE evaluations SET loss_by_client = substr(loss_by_client, 1, 8)",
    "no loss": "UPDATE evaluations SET loss_by_client = x''",
    "a text for scores": "UPDATE metrics SET by_client = 'abc'",
    "cut scores": "UPDATE metrics SET by_client = substr(by_client, 1, 16)",
    "a pooled score that is a text": "UPDATE metrics SET pooled = 'x'",
    "a loss that is a text": "UPDATE evaluations SET loss = 'x'",
}


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """A folder with one finished run of two evaluated rounds."""
    folder = tmp_path_factory.mktemp("healthy") / "runs"
    data = {"name": "synthetic", "clients": 5, "max_size": 40}
    experiment = comparison_of("one", data, {"name": "mlr"}, ["local"], rounds=2)
    (run,) = Workbench().check(experiment)
    with Store(folder) as store:
        store.set_fact("experiment", experiment.model_dump(mode="json"))
        store.set_fact(f"audit {run.data_hash}", [])
        store.start(run)
        for round_ in (0, 2):
            for_all = {"accuracy": np.full(5, 0.5), "macro-f1": np.full(5, 0.4)}
            scores = ClientScores(
                "local", "test", np.full(5, 10), np.full(5, 1.5), for_all, {"accuracy": 0.5, "macro-f1": 0.4}
            )
            store.record(run.id, round_, [scores], seconds=1.0, compile_seconds=1.0)
        store.finish(run.id, "done")
    return folder


def test_an_experiment_that_is_lost_is_damage_and_one_that_never_began_is_none(commandline, healthy, tmp_path):
    folder = tmp_path / "runs"
    shutil.copytree(healthy, folder)
    with sqlite3.connect(folder / DATABASE) as db:
        db.execute("DELETE FROM facts")
    db.close()
    for command in (("show",), ("report",), ("figure",)):
        code, _, err = commandline(*command, folder, *(["curves"] if command == ("figure",) else []))
        assert code == 1
        assert f"{DATABASE} is damaged: it holds runs, but not the experiment that they are of" in err
    with Store(tmp_path / "new") as store:
        assert store.fault() == ""
    code, _, err = commandline("show", tmp_path / "new")
    assert code == 1
    assert "holds no experiment: no run has begun in" in err


def refused(commandline, folder, command):
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    code, out, err = commandline(*command, folder)
    assert (code, out, err.count("\n")) == (1, "", 1), err
    assert err.startswith("error: ")
    assert str(folder) in err
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_the_folder_itself_is_shown(commandline, healthy):
    code, out, err = commandline("show", healthy)
    assert (code, err) == (0, "")
    assert "50.0" in out


@pytest.mark.parametrize("statement", SQL.values(), ids=SQL)
def test_what_was_altered_is_one_line(commandline, healthy, tmp_path, statement):
    folder = tmp_path / "runs"
    shutil.copytree(healthy, folder)
    db = sqlite3.connect(folder / DATABASE, isolation_level=None)
    db.execute(statement)
    db.close()
    refused(commandline, folder, ["show"])
    refused(commandline, folder, ["show", "--json"])


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.6])
def test_what_was_cut_is_one_line(commandline, healthy, tmp_path, share):
    folder = tmp_path / "runs"
    shutil.copytree(healthy, folder)
    file = folder / DATABASE
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    for command in (["show"], ["resume"]):
        refused(commandline, folder, command)
