import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.encode.columns import encode_column

TRAIN = np.array([True] * 4 + [False] * 2)


def encode(values, *, categorical=False, standardise=True, train=TRAIN):
    return encode_column(pd.Series(values, name="c"), train, categorical=categorical, standardise=standardise)


def test_numbers_are_standardised_on_training_rows():
    found = encode([1.0, 3.0, 1.0, 3.0, 100.0, 2.0])
    assert found.values[:, 0].tolist() == [-1, 1, -1, 1, 98, 0]
    assert found.names == ("c",)
    assert found.notes == ()
    assert (found.recipe["mean"], found.recipe["std"]) == (2.0, 1.0)
    assert encode([1, 3, 1, 3, 100, 2], standardise=False).values[:, 0].tolist() == [1, 3, 1, 3, 100, 2]
    assert encode([True, False, True, True, True, False], standardise=False).values.sum() == 4


def test_missing_numbers_are_the_training_median_and_marked():
    found = encode([1.0, np.nan, 5.0, 3.0, np.nan, 9.0], standardise=False)
    assert found.names == ("c", "c missing")
    assert found.values.tolist() == [[1, 0], [3, 1], [5, 0], [3, 0], [3, 1], [9, 0]]
    assert "2 missing values are the training median 3" in found.notes[0]


def test_missing_only_outside_training_rows():
    found = encode([1.0, 2.0, 3.0, 4.0, np.nan, 9.0], standardise=False)
    assert found.names == ("c",)
    assert found.values[4, 0] == 2.5
    assert "not marked" in found.notes[0]


def test_only_where_it_is_missing_matters():
    found = encode([2.0, np.nan, 2.0, 2.0, np.nan, 2.0])
    assert found.names == ("c missing",)
    assert found.values[:, 0].tolist() == [0, 1, 0, 0, 1, 0]


def test_nullable_integers():
    values = pd.array([1, None, 3, 2, 4, None], dtype="Int64")
    assert encode(values, standardise=False).values[:, 0].tolist() == [1, 2, 3, 2, 4, 2]


def test_categories_are_those_of_the_training_rows():
    found = encode(["b", "a", None, "b", "z", "a"])
    assert found.names == ("c=(missing)", "c=a", "c=b")
    assert found.values.tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert "1 missing values are the category" in found.notes[0]
    assert "1 values outside the training rows" in found.notes[1]
    assert "(z)" in found.notes[1]


def test_numbers_can_be_categories():
    assert encode([3, 5, 3, 5, 5, 3], categorical=True).names == ("c=3", "c=5")


@pytest.mark.parametrize(
    ("values", "why"),
    [([1, 1, 1, 1, 2, 3], "constant"), (["a"] * 5 + ["b"], "constant"), ([np.nan] * 4 + [1, 2], "no value")],
)
def test_constant_columns_are_dropped(values, why):
    found = encode(values)
    assert found.values.shape == (6, 0)
    assert "'c' is dropped" in found.notes[0]
    assert why in found.notes[0]


def test_too_many_categories():
    train = np.ones(201, dtype=bool)
    with pytest.raises(DataError, match=r"column 'c' has 201 categories.*ignore=\['c'\]"):
        encode([f"id {i}" for i in range(201)], train=train)
