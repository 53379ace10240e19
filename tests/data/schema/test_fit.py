"""Columns fitted on training rows, and rows encoded by what was fitted."""

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.schema.columns import Number
from idiolect.data.schema.decide import MOST
from idiolect.data.schema.fit import fit_column

TRAIN = np.array([True] * 4 + [False] * 2)


def encode(values, *, train=TRAIN, **options):
    """(features' names, their values, all notes) of a column."""
    column = pd.Series(values, name="c")
    fitted, told = fit_column(column, train, **options)
    x, notes = fitted.encode(column)
    return fitted.features, x, (*told, *notes)


def test_numbers_are_standardised_on_training_rows():
    names, x, notes = encode([1.0, 3.0, 1.0, 3.0, 100.0, 2.0])
    assert x[:, 0].tolist() == [-1, 1, -1, 1, 98, 0]
    assert (names, notes) == (("c",), ())
    assert encode([1, 3, 1, 3, 100, 2], standardise=False)[1][:, 0].tolist() == [1, 3, 1, 3, 100, 2]
    assert encode([True, False, True, True, True, False], standardise=False)[1].sum() == 4


def test_large_numbers_are_scaled_in_double_precision():
    x = encode(1e9 + np.array([1.0, 3.0, 1.0, 3.0, 2.0, 2.0]))[1]
    assert x[:, 0].tolist() == [-1, 1, -1, 1, 0, 0]


def test_missing_numbers_are_the_training_median_and_marked():
    names, x, notes = encode([1.0, np.nan, 5.0, 3.0, np.nan, 9.0], standardise=False)
    assert names == ("c", "c missing")
    assert x.tolist() == [[1, 0], [3, 1], [5, 0], [3, 0], [3, 1], [9, 0]]
    assert "2 missing values are the training median 3" in notes[0]


def test_missing_numbers_can_be_the_training_mean():
    names, x, notes = encode([1.0, np.nan, 5.0, 4.5, np.nan, 9.0], standardise=False, missing="mean")
    assert (names, x[:, 0].tolist()) == (("c", "c missing"), [1, 3.5, 5, 4.5, 3.5, 9])
    assert "2 missing values are the training mean 3.5" in notes[0]
    assert encode([1.0, np.nan, 5.0, 3.0, np.nan, 9.0], missing="mean")[1][1, 0] == 0.0


def test_a_file_that_knows_only_the_median_is_read():
    old = Number.model_validate({"kind": "number", "name": "c", "median": 2.0})
    assert (old.fill, old.missing) == (2.0, "median")
    assert Number.model_validate(old.model_dump()) == old


def test_missing_only_outside_training_rows():
    names, x, notes = encode([1.0, 2.0, 3.0, 4.0, np.nan, 9.0], standardise=False)
    assert names == ("c",)
    assert x[4, 0] == 2.5
    assert "not marked" in notes[0]


def test_only_where_it_is_missing_matters():
    names, x, _ = encode([2.0, np.nan, 2.0, 2.0, np.nan, 2.0])
    assert names == ("c missing",)
    assert x[:, 0].tolist() == [0, 1, 0, 0, 1, 0]


def test_text_with_a_decimal_comma_and_words_for_missing():
    names, x, notes = encode(["1,5", "unknown", "2,5", "2", "9,5", "lost"], standardise=False)
    assert names == ("c", "c missing")
    assert x[:, 0].tolist() == [1.5, 2.0, 2.5, 2.0, 9.5, 2.0]
    assert "decimal comma" in notes[0]
    assert "'lost', 'unknown' are read as missing" in notes[1]


def test_dates_are_days_and_told():
    _, x, notes = encode(pd.to_datetime(["1970-01-02", "1970-01-04"] * 3), standardise=False)
    assert x[:, 0].tolist() == [1, 3] * 3
    assert "days since 1970-01-01" in notes[0]


def test_categories_are_those_of_the_training_rows():
    names, x, notes = encode(["b", "a", None, "b", "z", "a"])
    assert names == ("c=(missing)", "c=a", "c=b")
    assert x.tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert "1 missing values are the category" in notes[0]
    assert "1 values are of no category that has a feature and are all zeros (z)" in notes[1]


def test_what_is_missing_only_outside_training_rows_is_all_zeros():
    names, x, notes = encode(["b", "a", "a", "b", None, "a"])
    assert names == ("c=a", "c=b")
    assert x[4].tolist() == [0, 0]
    assert "((missing))" in notes[0]


def test_numbers_can_be_categories():
    assert encode([3, 5, 3, 5, 5, 3], categorical=True)[0] == ("c=3", "c=5")
    assert encode([3.0, np.nan, 3, 5, 5, 3], categorical=True)[0] == ("c=(missing)", "c=3", "c=5")
    assert encode(pd.Categorical([3, 5, 3, 5, 5, 3]))[0] == ("c=3", "c=5")


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1, 1, 1, 1, 2, 3], "constant"),
        (["a"] * 5 + ["b"], "constant"),
        ([np.nan] * 4 + [1, 2], "no value"),
        ([None] * 4 + ["a", "b"], "no value"),
    ],
)
def test_columns_that_tell_nothing_are_left_out(values, why):
    _, x, notes = encode(values)
    assert x.shape == (6, 0)
    assert "'c' is left out" in notes[0]
    assert why in notes[0]


def test_identifiers_are_left_out_unless_they_are_to_be_kept():
    everything = np.ones(40, bool)
    for values in (np.arange(40), [f"p{k}" for k in range(40)]):
        _, x, notes = encode(values, train=everything)
        assert x.shape == (40, 0)
        assert "an identifier" in notes[0]
        assert "keep=['c'] keeps it" in notes[0]
        assert encode(values, train=everything, keep=True)[1].shape[1] in (1, 40)


def test_only_the_most_frequent_categories_have_a_feature():
    words = [f"w{k:03}" for k in range(MOST + 5)]
    names, x, notes = encode([*words * 2, *words[5:]], train=np.ones(3 * MOST + 10, bool))
    assert names == tuple(f"c={word}" for word in words[5:])
    assert x[:5].sum() == 0
    assert "only its 200 most frequent categories have a feature (not w000, w001, w002, w003, w004)" in notes[0]


def test_values_out_of_range_name_their_row():
    for value, message in ((np.inf, "infinite in row 3"), (1e31, "beyond 1e.30 in row 3")):
        with pytest.raises(DataError, match=f"column 'c' is {message}"):
            encode([1.0, 2.0, value, 3.0, 1.0, 1.0])
    with pytest.raises(DataError, match="infinite in row 5"):
        encode([1.0, 2.0, 1.0, 3.0, np.inf, 1.0])


def test_one_word_or_none_is_no_constant():
    """A mark that is either there or missing tells two kinds of rows apart."""
    names, x, _ = encode(["yes", None, "yes", None, "yes", None])
    assert names == ("c=(missing)", "c=yes")
    assert x.tolist() == [[0, 1], [1, 0], [0, 1], [1, 0], [0, 1], [1, 0]]
