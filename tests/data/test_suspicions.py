"""What a person should look at: columns, copies, clients and classes."""

import numpy as np
import pandas as pd

from idiolect.data.schema.columns import LeftOut, Number
from idiolect.data.suspicions import of_classes, of_clients, suspicions_of


def test_columns_and_copies_are_named() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=30), "id": np.arange(30), "label": rng.integers(0, 2, 30)})
    table["copy"] = table["x"]
    columns = (Number(name="x", fill=0.0), LeftOut(name="id", why="an identifier: a running number"))
    owners = np.array(["a", "b", "c"] * 10)
    found = suspicions_of(table, ["x", "id", "copy"], "label", owners, columns, ["x"])
    assert found == [
        "column 'x' alone tells the label of every row: is it the label under another name?",
        "column 'copy' repeats 'x'",
        "column 'id' is an identifier: a running number",
    ]
    twice = pd.concat([table, table.iloc[:2]])
    moved = suspicions_of(twice, ["x"], "label", np.append(owners, ["a", "a"]), (), ())
    assert moved == ["2 rows stand at more than one client", "1 rows repeat another row of their client"]
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
