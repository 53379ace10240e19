"""The data of a command: a file or a named source, their default model, and the folder that is written."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from idiolect.cli.inputs import auto_model, check_file, data_spec, default_folder, with_auto_model
from idiolect.core.errors import ConfigError, DataError
from idiolect.data.sets import registry as sources
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import comparison_of


@pytest.fixture
def idiolect(commandline, monkeypatch, tmp_path):
    """The command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return commandline


def test_data_are_a_known_source_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_spec("synthetic", "client", "label") == ({"name": "synthetic"}, "synthetic")
    monkeypatch.chdir(tmp_path)
    table = {"name": "table", "client": "who", "label": "y"}
    for name in ("wards.csv", "wards.PARQUET", "wards.pq", "wards.tsv"):
        (tmp_path / name).touch()
        assert data_spec(name, "who", "y") == ({**table, "path": str(tmp_path / name)}, "wards")
    (tmp_path / "mnist").write_text("who,y\n")  # a file goes before a source of its name
    assert data_spec("mnist", "who", "y")[0]["path"] == str(tmp_path / "mnist")


@pytest.mark.parametrize(("name", "hint"), [("synthetc", "did you mean 'synthetic'"), ("table", "unknown data set")])
def test_other_data_are_refused(name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"{hint}.*; or give the path of a CSV, Parquet, JSON or Excel file"):
        data_spec(name, "client", "label")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nope.csv", "no such file: nope.csv; tables there: patients.csv, wards.xlsx"),
        ("patient.csv", "no such file: patient.csv; did you mean 'patients.csv'?"),
        ("Patients.tsv", "no such file: Patients.tsv; did you mean 'patients.csv'?"),
        ("sub/nope.csv", "no such file: sub/nope.csv"),
        ("absent/nope.csv", "no such file: absent/nope.csv; there is no folder 'absent'"),
        ("./sub", "'sub' is a folder; name the table's file in it"),
        (".", "'.' is a folder; name the table's file in it; tables there: patients.csv, wards.xlsx"),
        ("x" * 5000 + ".csv", "no such file"),
    ],
)
def test_a_file_that_is_not_there_is_refused_with_near_ones(name, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for file in ("patients.csv", "wards.xlsx", "notes.txt"):
        (tmp_path / file).touch()
    with pytest.raises(DataError, match=f"^{re.escape(words)}") as refused:
        data_spec(name, "client", "label")
    assert str(refused.value) == words or len(name) > 100


def test_a_table_in_a_folder_without_rights_is_refused(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(DataError, match="no such file"):
        check_file(tmp_path / "nope.csv")


@pytest.mark.parametrize("command", ["compare", "sweep --methods local", "advise", "inspect", "personalize run"])
@pytest.mark.parametrize("as_option", [False, True])
def test_every_command_says_that_a_table_is_not_there(idiolect, tmp_path, command, as_option):
    (tmp_path / "patients.csv").touch()
    code, out, err = idiolect(*command.split(), *(["--data"] if as_option else []), "patient.csv")
    assert (code, out) == (1, "")
    assert err == "error: no such file: patient.csv; did you mean 'patients.csv'?\n"


@pytest.mark.parametrize(("labels", "model"), [("0.5", "linear"), ("1", "mlr")])
def test_the_model_follows_from_the_labels(tmp_path: Path, labels: str, model: str) -> None:
    rows = [f"{client},{i},{labels if i % 2 else 0}" for client in "ab" for i in range(8)]
    (tmp_path / "t.csv").write_text("\n".join(["client,x,label", *rows]))
    spec, _ = data_spec(str(tmp_path / "t.csv"), "client", "label")
    assert auto_model(spec, Workbench()) == model
    assert auto_model({"name": "synthetic"}, Workbench()) == "mlr"


def test_the_model_of_a_source_of_numbers_is_for_numbers(tmp_path: Path) -> None:
    x, y = (np.empty((1, 2), dtype=object) for _ in range(2))
    for client in range(2):
        x[0, client], y[0, client] = np.arange(24.0).reshape(8, 3), np.arange(8.0)[:, None]
    (tmp_path / "school").mkdir()
    savemat(tmp_path / "school" / "school.mat", {"X": x, "Y": y})
    assert auto_model({"name": "school"}, Workbench(str(tmp_path))) == "linear"


def test_the_folder_of_an_experiment_follows_from_its_settings() -> None:
    experiment = comparison_of("a/b", {"name": "synthetic"}, {"name": "mlr"}, ["local"], rounds=2)
    plain = default_folder(experiment, {})
    assert plain == Path("runs/compare-a-b")
    assert default_folder(experiment, {"seeds": 3}) == plain  # more seeds go on in the same folder
    one, two = (default_folder(experiment, {"rounds": rounds}) for rounds in (5, 6))
    assert one.name.startswith("compare-a-b-")
    assert len(one.name) == len("compare-a-b-") + 6
    assert one != two
    assert one == default_folder(experiment, {"rounds": 5, "seeds": 9})


@pytest.mark.second
def test_a_table_is_read_once(idiolect, monkeypatch):
    rows = [f"{client},{i / 7},{i % 2}" for client in "abc" for i in range(12)]
    Path("t.csv").write_text("\n".join(["client,x,label", *rows]) + "\n")
    load, read = sources.load, []
    monkeypatch.setattr(sources, "load", lambda spec: read.append(spec) or load(spec))
    few = ("--rounds", "1", "--set", "data.validation=0.2", "--json")
    assert idiolect("compare", "--data", "t.csv", "--methods", "local", "--jobs", "1", *few[:2], "--json")[0] == 0
    assert len(read) == 1
    read.clear()
    assert idiolect("sweep", "--data", "t.csv", "--methods", "local", "--set", "local.rate=0.1,0.2", *few)[0] == 0
    assert len(read) <= 2  # with other settings of the data than those by which the model was chosen


def test_settings_hold_before_the_default_model_is_chosen(idiolect):
    """The identifier is a column of features, and 0 and 1 are classes, unless --set says otherwise."""
    rows = [f"{client},{i},{i / 7},{i % 2}" for client in "abc" for i in range(12)]
    Path("t.csv").write_text("\n".join(["client,id,x,label", *rows, "d,1,2,0", "d,1,2,1", "d,1,2,0"]) + "\n")
    few = ("--rounds", "1", "--jobs", "1", "--set", "local.local_steps=1", "--set", "data.ignore=['id']")
    told = ("--set", "data.task=regression", "--set", "data.minimum=5", "--out", "here")
    assert idiolect("compare", "--data", "t.csv", "--methods", "local", *few, *told)[0] == 0
    report = Path("here/report.md").read_text()
    assert "model: linear" in report
    assert "1 of 4 clients have fewer than minimum=5" in report
    assert "ignore = ['id']" in report


def test_a_model_that_is_set_is_not_chosen(tmp_path):
    (tmp_path / "t.csv").write_text("client,x,label\n" + "".join(f"{'ab'[i % 2]},{i},{i / 3}\n" for i in range(20)))
    spec, name = data_spec(str(tmp_path / "t.csv"), "client", "label")
    experiment = comparison_of(name, spec, {"name": "mlr", "l2": 0.5}, ["local"])
    bench = Workbench()
    assert with_auto_model(experiment, {"model.name": "mlp"}, bench) is experiment
    assert with_auto_model(experiment, {}, bench).cells[0].model == {"name": "linear", "l2": 0.5}
