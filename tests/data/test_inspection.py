import json
import shlex

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.inspection import inspect_table
from tests.tables import wards


@pytest.fixture
def table():
    made = wards().drop(columns="split")
    made["outcome"] = made["label"].map({"ill": 1, "well": 0})
    made["age2"] = made["age"]
    made["patient"] = np.arange(len(made)) + 10**11
    return made


def test_what_is_found(table):
    found = inspect_table(table, "ward")
    assert (found.rows, found.task) == (60, "classification")
    assert [one.name for one in found.clients] == ["north", "south", "west"]
    for one in found.clients:
        own = table[table["ward"] == one.name]
        assert one.rows == 20
        assert dict(one.labels) == {name: int((own["label"] == name).sum()) for name in ("ill", "well")}
    columns = {one.name: one for one in found.columns}
    assert columns["dose"].missing == table["dose"].isna().mean()
    assert columns["sex"].distinct == 2
    assert columns["patient"].done.startswith("left out: an identifier")
    told = " ".join(found.suspicions)
    assert "'outcome' alone tells the label" in told
    assert "'age2' repeats 'age'" in told
    assert "'patient' is an identifier" in told
    assert json.loads(json.dumps(found.to_dict()))["rows"] == 60


def test_nothing_is_suspected_of_a_plain_table():
    assert inspect_table(wards(), "ward").suspicions == ()


def test_rows_and_labels_that_ask_for_a_look():
    table = wards()
    table["height"] = np.random.default_rng(1).normal(170, 9, len(table))
    copied = pd.concat(
        [table, table.iloc[:3].assign(ward="west"), table.iloc[7:8], table.iloc[9:10].assign(ward="tiny")]
    )
    told = " ".join(inspect_table(copied, "ward").suspicions)
    assert "8 rows stand at more than one client" in told
    assert "1 rows repeat another row of their client" in told
    assert "1 of 4 clients have fewer than 10 rows: tiny" in told
    assert "1 of 4 clients have one class only: tiny" in told
    rare = table.assign(label=["ill"] + ["well"] * 59)
    told = " ".join(inspect_table(rare, "ward").suspicions)
    assert "98.3% of the labels are 'well'" in told
    assert "single client" in " ".join(inspect_table(table.assign(ward="a"), "ward").suspicions)


def test_a_regression_is_told_in_its_units():
    found = inspect_table(wards(regression=True), "ward")
    assert found.labels["mean"] == pytest.approx(wards(regression=True)["label"].mean(), rel=1e-6)


def test_the_command_is_one_that_runs(commandline, table, tmp_path):
    path = tmp_path / "my table.csv"
    table.to_csv(path, index=False)
    code, out, err = commandline("inspect", path, "--client", "ward", "--json")
    assert (code, err) == (0, "")
    words = shlex.split(json.loads(out)["command"])
    assert words[:2] == ["idiolect", "compare"]
    assert """data.ignore=["outcome"]""" in words
    code, out, err = commandline("inspect", path, "--client", "ward")
    assert (code, err) == (0, "")
    assert "look at: column 'outcome' alone" in out
    assert "idiolect compare --data" in out
    assert "data.task" not in out
    code, out, err = commandline("inspect", path, "--client", "ward", "--label", "age", "--task", "regression")
    assert (code, err) == (0, "")
    assert "--set data.task=regression" in out


def test_what_cannot_be_inspected(commandline, tmp_path):
    with pytest.raises(DataError, match="no client column 'hospital'"):
        inspect_table(wards(), "hospital")
    code, out, err = commandline("inspect", tmp_path / "none.csv")
    assert (code, out, err.count("\n")) == (1, "", 1)
