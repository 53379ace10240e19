import numpy as np
import pandas as pd
import pytest

from idiolect.data import audit, from_table
from idiolect.data.schema.leaks import repeated_columns, telling_columns
from tests.tables import wards


def telling(table, **options):
    data = from_table(table, "ward", **options)
    x = np.concatenate([data.split(name).x for name in ("train", "validation", "test")])
    y = np.concatenate([data.split(name).y for name in ("train", "validation", "test")])
    return telling_columns(data.schema, x, y)


@pytest.mark.parametrize(
    ("made", "tells"),
    [
        (lambda t: t["label"].map({"ill": 1, "well": 0}), True),
        (lambda t: t["label"].map({"ill": "krank", "well": "gesund"}), True),
        (lambda t: t["label"].map({"ill": 2.0, "well": 7.0}) + t["age"] / 1000, True),
        (
            lambda t: (
                t["label"].map({"ill": 1, "well": 0}).where(t.index != 5, 1 - (t["label"] == "ill").astype(int))
            ),
            False,
        ),
        (lambda t: t["age"] * 2, False),
        (lambda t: t["sex"].map({"f": "x", "m": "y"}), False),
    ],
)
def test_a_column_that_tells_the_class(made, tells):
    table = wards()
    assert telling(table) == ()
    table["other"] = made(table)
    assert telling(table) == (("other",) if tells else ())


def test_a_column_that_tells_the_number():
    table = wards(regression=True)
    assert telling(table) == ()
    table["other"] = -np.log(table["label"])
    assert telling(table) == ("other",)
    table.loc[3, "other"] += 1
    assert telling(table) == ()


def test_few_rows_tell_nothing():
    table = wards(rows=6)
    table["other"] = (table["label"] == "ill").astype(int)
    assert telling(table) == ()


def test_the_audit_tells_it():
    table = wards()
    assert audit(from_table(table, "ward")).clean
    table["outcome"] = table["label"].map({"ill": 1, "well": 0})
    found = audit(from_table(table, "ward"))
    assert not found.clean
    assert found.telling == ("outcome",)
    assert "Column 'outcome' alone tells the label of every row" in " ".join(found.lines())
    assert """--set 'data.ignore=["outcome"]' leaves it out""" in " ".join(found.lines())


def test_columns_that_repeat_another():
    table = pd.DataFrame(
        {"a": [1, 2, None], "b": ["1", "2", None], "c": [2, 1, None], "d": [1, 1, 1], "e": [1, 1, 1]}
    )
    assert repeated_columns(table, list("abcde")) == [("b", "a")]
