"""The command encode: a table in a folder, which the other commands read in its place."""

import json

import pandas as pd

from idiolect.data import from_table, load_data
from tests.data.sets.test_table import frame


def test_what_is_encoded_is_compared(commandline, tmp_path):
    frame(clients=4, rows=30).to_parquet(tmp_path / "own.parquet")
    code, out, err = commandline("encode", tmp_path / "own.parquet", "-o", tmp_path / "own.data")
    assert code == 0
    assert "4 clients" in out
    assert f"to compare methods: idiolect compare --data {tmp_path / 'own.data'}" in out
    assert "looking for leaks" in err
    assert "compiling" not in err
    data = load_data(tmp_path / "own.data")
    assert (data.name, data.fingerprint) == ("own", from_table(tmp_path / "own.parquet").fingerprint)
    compare = ("compare", "--methods", "fedavg,local", "--rounds", 3, "--save-models", "none", "--metric", "log-loss")
    code, out, _ = commandline(*compare, "--data", tmp_path / "own.data", "--out", tmp_path / "a")
    assert code == 0
    commandline(*compare, "--data", tmp_path / "own.parquet", "--out", tmp_path / "b")
    tables = [pd.read_csv(tmp_path / name / "clients.csv") for name in "ab"]
    pd.testing.assert_frame_equal(*tables)


def test_settings_and_json(commandline, tmp_path):
    frame().to_csv(tmp_path / "own.csv", index=False)
    options = ("--set", "data.validation=0.3", "--set", 'data.ignore=["sex"]', "--json")
    code, out, _ = commandline("encode", tmp_path / "own.csv", "-o", tmp_path / "data", *options)
    assert code == 0
    data = load_data(tmp_path / "data")
    assert json.loads(out) == {"data": str(tmp_path / "data"), "fingerprint": data.fingerprint}
    assert data.feature_shape == (1,)
    assert data.validation.count == 12


def test_mistakes_are_one_line_and_leave_nothing(commandline, tmp_path):
    frame().to_csv(tmp_path / "own.csv", index=False)
    for arguments, message in (
        (("nowhere.csv",), "no such file"),
        (("mnist",), "a data set of its own"),
        ((tmp_path / "own.csv", "--client", "hospital"), "no client column 'hospital'"),
        ((tmp_path / "own.csv", "--set", "model.l2=1"), "encode takes settings of the data"),
        ((tmp_path / "own.csv", "--set", "data.minimun=1"), "did you mean 'minimum'"),
    ):
        code, out, err = commandline("encode", *arguments, "-o", tmp_path / "data")
        lines = [line for line in err.splitlines() if not line.startswith("[")]
        assert (code, out, len(lines)) == (1, "", 1), err
        assert message in lines[0]
    for place in (tmp_path, tmp_path / "own.csv"):  # nothing that is there is written over
        code, _, err = commandline("encode", tmp_path / "own.csv", "-o", place)
        assert code == 1
        assert "is there already" in err
    assert [path.name for path in tmp_path.iterdir()] == ["own.csv"]
    assert len(pd.read_csv(tmp_path / "own.csv")) == 36
    code, _, err = commandline("compare", "--data", tmp_path)
    assert code == 1
    assert "is a folder; name the table's file in it; tables there: own.csv" in err
