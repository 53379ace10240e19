import math
import shutil
from pathlib import Path

import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.study.spec.change import located, override
from idiolect.study.spec.experiment import comparison_of, experiment_of
from tests.study.spec.test_experiment import BASE


def test_override_reaches_experiment_cells_data_model_and_methods():
    changes = {
        "seeds": 4, "rounds": 9, "data.clients": 7, "model.l2": 0.5, "model.name": "mlp", "pfedme.rate": 0.5,
        "averaging.rate": 0.25,
    }  # fmt: skip
    found = override(experiment_of(BASE, "here"), changes)
    c = found.cells[0]
    assert (found.seeds, c.rounds) == (4, 9)
    assert c.data == {"name": "synthetic", "clients": 7}
    assert c.model == {"name": "mlp", "l2": 0.5}
    assert [m.spec.get("rate") for m in c.methods] == [0.5, 0.25, None]
    assert found.description.startswith("Changed with --set: rounds = 9, data.clients = 7")


def test_cells_and_methods_that_are_left_out_need_not_know_a_key():
    cells = [{**BASE["cells"][0], "id": name, "model": model} for name, model in (("a", "mlr"), ("b", "cnn"))]
    both = experiment_of({**BASE, "cells": cells}, "here")
    with pytest.raises(ConfigError, match="unknown key of model mlr 'convolution'"):
        override(both, {"model.convolution": "direct"})
    found = override(both, {"model.convolution": "direct"}, ["b"])
    assert [(cell.id, cell.model) for cell in found.cells] == [("b", {"name": "cnn", "convolution": "direct"})]
    with pytest.raises(ConfigError, match="unknown method 'averaging'"):
        override(both, {"averaging.rate": 1}, ["b/pfedme"])


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("ruonds", 3, "unknown key 'ruonds'; did you mean 'rounds'"),
        ("cells", 3, "unknown key 'cells'"),
        ("pfedmo.rate", 3, "unknown method 'pfedmo'; did you mean 'pfedme'"),
        ("pfedme.rat", 3, "did you mean 'rate'"),
        ("pfedme.rate", math.nan, "rate = nan"),
        ("data", 3, "data = 3"),
    ],
)
def test_override_refuses(key, value, match):
    with pytest.raises(ConfigError, match=match):
        override(experiment_of(BASE, "here"), {key: value})


TABLE = "client,x,label\n" + "".join(f"{'ab'[i % 2]},{i / 7},{'yn'[i % 3 == 0]}\n" for i in range(40))


def of_table(path, **data):
    return comparison_of("one", {"name": "table", "path": str(path), **data}, {"name": "mlr"}, ["local"])


def place(experiment):
    return experiment.cells[0].data["path"]


@pytest.mark.parametrize("where", ["as it lay", "in the folder", "beside it"])
def test_a_table_is_found_by_where_it_lay_or_near_the_run(tmp_path, where):
    old, new = tmp_path / "old", tmp_path / "new"
    runs = new / "runs" / "one"
    runs.mkdir(parents=True)
    target = {
        "as it lay": new / "data" / "t.csv",
        "in the folder": runs / "t.csv",
        "beside it": new / "runs" / "t.csv",
    }
    target[where].parent.mkdir(exist_ok=True)
    target[where].write_text(TABLE)
    found = located(of_table(old / "data" / "t.csv", minimum=3), runs, str(old / "runs" / "one"))
    assert place(found) == str(target[where])
    assert found.cells[0].data["minimum"] == 3


def test_a_table_at_its_old_place_stays_there_and_other_data_are_left_alone(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    experiment = of_table(tmp_path / "t.csv")
    assert located(experiment, tmp_path / "absent", None) == experiment
    other = comparison_of("one", {"name": "synthetic"}, {"name": "mlr"}, ["local"])
    assert located(other, tmp_path, None) == other
    assert place(located(experiment, tmp_path, None, str(tmp_path / "x.csv"))) == str(tmp_path / "x.csv")
    with pytest.raises(ConfigError, match="--data is for a run with one table, and this one has 0"):
        located(other, tmp_path, None, "x.csv")


def test_a_table_that_is_nowhere_is_asked_for(tmp_path):
    with pytest.raises(DataError, match=r"gone/t\.csv: no such file.*idiolect resume .* --data FILE"):
        located(of_table("/gone/t.csv"), tmp_path, "/gone/runs")


@pytest.mark.second
def test_a_moved_folder_goes_on_and_another_table_is_refused(commandline, monkeypatch, tmp_path):
    (tmp_path / "old").mkdir()
    monkeypatch.chdir(tmp_path / "old")
    Path("t.csv").write_text(TABLE)
    small = ("--methods", "local", "--set", "local.local_steps=2", "--rounds", "1", "--jobs", "1", "--out", "runs")
    assert commandline("compare", "--data", "t.csv", *small)[0] == 0
    shutil.move(tmp_path / "old", tmp_path / "new")
    monkeypatch.chdir(tmp_path)
    assert commandline("resume", "new/runs")[0] == 0
    shutil.move("new/t.csv", "elsewhere.csv")
    code, _, err = commandline("resume", "new/runs")
    assert (code, err.count("\n")) == (1, 1)
    assert "--data FILE" in err
    assert commandline("resume", "new/runs", "--data", "elsewhere.csv")[0] == 0
    Path("other.csv").write_text(TABLE.replace("0.0", "9.0"))
    code, _, err = commandline("resume", "new/runs", "--data", "other.csv")
    assert code == 1
    assert "have changed since it was started" in err
