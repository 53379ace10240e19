"""What a person should look at: columns, copies, clients and classes."""

import json
import shlex
import warnings

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.inspection import inspect_table, of_classes, of_clients, suspicions_of
from idiolect.data.schema.columns import LeftOut, Number
from tests.tables import wards


def test_columns_and_copies_are_named() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=30), "id": np.arange(30), "label": rng.integers(0, 2, 30)})
    table["copy"] = table["x"]
    columns = (Number(name="x", fill=0.0), LeftOut(name="id", why="an identifier: a running number"))
    owners = np.array(["a", "b", "c"] * 10)
    found = suspicions_of(table, ["x", "id", "copy"], "label", owners, columns, ["x"])
    assert found == [
        "column 'x' gives the label of every row by itself: is it the label under another name?",
        "column 'copy' repeats 'x'",
        "column 'id' is an identifier: a running number",
    ]
    twice = pd.concat([table, table.iloc[:2]])
    moved = suspicions_of(twice, ["x"], "label", np.append(owners, ["a", "a"]), (), ())
    assert moved == ["2 rows are held by more than one client", "1 rows repeat another row of their client"]
    assert suspicions_of(table.iloc[:0], ["x"], "label", owners[:0], (), ()) == []


def test_small_clients_and_single_ones() -> None:
    assert of_clients({"a": 10, "b": 12}) == []
    assert of_clients({"a": 9, "b": 12}) == ["1 of 2 clients have fewer than 10 rows: a"]
    assert of_clients({"a": 30}) == ["there is a single client: nothing to federate"]


def test_classes_that_nearly_all_labels_have() -> None:
    y = np.array([0] * 49 + [1])
    counts = {"a": {"n": 25, "y": 0}, "b": {"n": 24, "y": 1}}
    assert of_classes(y, ("n", "y"), counts) == [
        "98.0% of the labels are 'n': accuracy says little, compare by balanced-accuracy or auroc",
        "1 of 2 clients have one class only: a",
    ]
    assert of_classes(np.array([0, 1]), ("n", "y"), {"a": {"n": 1, "y": 1}}) == []


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
    assert "'outcome' gives the label" in told
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
    assert "8 rows are held by more than one client" in told
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
    assert "check: column 'outcome' gives" in out
    assert "idiolect compare" in out
    assert "data.task" not in out
    code, out, err = commandline("inspect", path, "--client", "ward", "--label", "age", "--task", "regression")
    assert (code, err) == (0, "")
    assert "--set data.task=regression" in out


def test_what_cannot_be_inspected(commandline, tmp_path):
    with pytest.raises(DataError, match="no client column 'hospital'"):
        inspect_table(wards(), "hospital")
    code, out, err = commandline("inspect", tmp_path / "none.csv")
    assert (code, out, err.count("\n")) == (1, "", 1)


def gapped(**changed):
    """The plain table with other entries: label={3: None} empties the fourth label."""
    made = wards().drop(columns="split")
    for column, entries in changed.items():
        if not all(isinstance(value, float) for value in entries.values()):
            made[column] = made[column].astype(object)
        for row, value in entries.items():
            made.loc[row, column] = value
    return made


@pytest.mark.parametrize(
    ("changed", "faults"),
    [
        (
            {"label": {3: None, 5: "  ", 59: np.nan}},
            [
                "column 'label': 3 values are missing, first in row 4; remove these rows or fill the labels",
                "rows without a usable label by client: north 2 of 20, west 1 of 20",
            ],
        ),
        ({"ward": {3: None}}, ["column 'ward': 1 value is missing, first in row 4; the client of every row"]),
        ({"ward": {3: " "}}, ["column 'ward' has a blank client name in row 4"]),
        ({"age": {3: np.inf}}, ["column 'age' is infinite in row 4 (1 in all)"]),
        ({"age": {3: [1]}}, ["column 'age' holds a list, not one value a row"]),
        ({"label": dict.fromkeys(range(60), "ill")}, ["column 'label': all labels are 'ill'"]),
        ({"label": dict.fromkeys(range(60))}, ["column 'label': 60 values are missing", "rows without a usable"]),
        ({"label": {row: f"p{row}" for row in range(60)}}, ["column 'label': every row has a label of its own"]),
    ],
)
def test_what_has_to_be_mended_is_shown_with_its_place(changed, faults):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = inspect_table(gapped(**changed), "ward")
    assert len(found.faults) == len(faults)
    for fault, start in zip(found.faults, faults, strict=True):
        assert start in fault
        assert not fault.startswith("table")
    assert found.rows == 60
    assert {one.name for one in found.clients} == {"north", "south", "west"}
    others = [name for name in wards().columns if name not in ("ward", "label", "split")]
    assert [one.name for one in found.columns] == others
    json.dumps(found.to_dict(), allow_nan=False)


def test_gaps_in_labels_are_counted_by_client_and_the_other_labels_are_shown():
    found = inspect_table(gapped(label={3: None, 5: None, 59: None}), "ward")
    assert [one.unlabelled for one in found.clients] == [2, 0, 1]
    whole = {one.name: one for one in inspect_table(gapped(), "ward").clients}
    for one in found.clients:
        assert sum(one.labels.values()) == 20 - one.unlabelled
        assert all(count <= whole[one.name].labels[name] for name, count in one.labels.items())
    assert whole["north"].unlabelled == 0
    regression = wards(regression=True).drop(columns="split")
    regression.loc[:19, "label"] = np.nan
    regression.loc[20, "label"] = np.inf
    regression.loc[21, "label"] = 1e300
    found = inspect_table(regression, "ward")
    assert [one.unlabelled for one in found.clients] == [20, 2, 0]
    assert dict(found.clients[0].labels) == {}
    assert found.clients[2].labels["mean"] == pytest.approx(regression["label"][40:].mean(), rel=1e-6)
    assert [fault.split(";")[0] for fault in found.faults[:2]] == [
        "column 'label': 20 values are missing, first in row 1",
        "column 'label' is infinite in row 21 (1 in all)",
    ]


def test_a_table_without_features_and_one_with_a_wrong_split_are_shown():
    bare = wards()[["ward", "label"]]
    assert "no feature is left" in inspect_table(bare, "ward").faults[0]
    odd = wards().assign(split="dev")
    assert "column 'split' has 'dev' in row 1" in inspect_table(odd, "ward").faults[0]


def test_suspicions_are_of_the_usable_rows():
    made = gapped(label={3: None})
    made["outcome"] = made["label"]
    assert "column 'outcome' gives the label" in " ".join(inspect_table(made, "ward").suspicions)


def test_the_command_shows_what_has_to_be_mended(commandline, tmp_path):
    path = tmp_path / "gaps.csv"
    gapped(label={3: None, 59: None}).to_csv(path, index=False)
    code, out, err = commandline("inspect", path, "--client", "ward")
    assert (code, err) == (0, "")
    assert "no label" in out
    assert "to correct: column 'label': 2 values are missing, first in row 4" in out
    assert "to correct: rows without a usable label by client: north 1 of 20, west 1 of 20" in out
    assert "to compare methods, once the table is corrected: idiolect compare" in out
    code, out, _ = commandline("inspect", path, "--client", "ward", "--json")
    assert (code, len(json.loads(out)["faults"])) == (0, 2)
    code, _, err = commandline("compare", "--data", path, "--client", "ward", "--methods", "local")
    assert (code, err.count("\n")) == (1, 1)
