import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.schema.columns import Category, LeftOut, Number
from idiolect.data.schema.fit import (
    MOST,
    Whole,
    category,
    fit_column,
    median_of,
    number,
    suspect_numbers,
    suspect_words,
    unfit_numbers,
    whole_of,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        ("x", np.arange(1, 41), True),
        ("x", RNG.permutation(60)[:30] + 1000, True),
        ("x", np.arange(40) * 5, False),
        ("x", RNG.integers(10**11, 10**12, 30), True),
        ("x", np.append(np.full(10, 10**11), np.full(30, 10**11 + 7)), True),
        ("x", np.full(30, 10**11), False),
        ("patient_id", RNG.permutation(1000)[:30] * 7, True),
        ("patientId", RNG.permutation(1000)[:30] * 7, True),
        ("paid", RNG.permutation(1000)[:30] * 7, False),
        ("id", np.repeat([1, 2, 3], 10), False),
        ("x", RNG.normal(size=40), False),
        ("x", np.arange(19), False),
        ("x", RNG.integers(0, 5, 100), False),
        ("income", RNG.integers(0, 90_000, 500), False),
    ],
)
def test_numbers_that_name_a_row(name, values, found):
    assert bool(suspect_numbers(name, whole_of(np.asarray(values, float)))) == found


def test_words_that_name_a_row():
    assert "30 distinct words in 30 rows" in suspect_words(30, 30)
    assert not suspect_words(19, 19)
    assert not suspect_words(30, 20)
    assert suspect_words(30, 27)
    assert not suspect_words(30, 26)


RUNNING = Whole(present=40, distinct=40, long=False, spread=39.0)
"""Forty whole numbers, one after the other."""


@pytest.mark.parametrize(
    ("reading", "whole", "keep", "one_value", "why"),
    [
        ("number", RUNNING, False, False, "an identifier: a running number (keep=['day'] keeps it)"),
        ("decimal comma", RUNNING, False, False, "an identifier: a running number (keep=['day'] keeps it)"),
        ("number", RUNNING, True, False, ""),
        ("date", RUNNING, False, False, ""),  # one row per day is a diary
        ("date d.m.y", RUNNING, False, False, ""),
        ("duration", RUNNING, False, False, ""),
        ("number", None, False, False, ""),
        ("number", None, False, True, "it is constant in the training rows"),
        ("number", None, True, True, "it is constant in the training rows"),
        ("date", None, False, True, "it is constant in the training rows"),
    ],
)
def test_numbers_are_left_out_as_identifiers_or_constants_but_dates_name_no_row(reading, whole, keep, one_value, why):
    expected = (LeftOut(name="day", why=why), (f"column 'day' is left out: {why}",)) if why else None
    assert unfit_numbers("day", reading, whole, keep=keep, one_value=one_value) == expected


@pytest.mark.parametrize(
    ("standardise", "deviation", "constant", "scaling"),
    [
        (True, 4.0, False, (10.0, 4.0)),
        (True, 0.5, False, (10.0, 0.5)),
        (False, 4.0, False, (0.0, 1.0)),
        (True, 0.0, False, (0.0, 1.0)),  # values that differ by less than the square root of the smallest number
        (True, 2e-15, True, (0.0, 1.0)),  # equal values whose deviation is an error of rounding
    ],
)
def test_numbers_are_scaled_by_their_deviation_unless_they_have_none(standardise, deviation, constant, scaling):
    fitted, notes = number(
        "c",
        "number",
        fill=9.0,
        filled="mean",
        mean=10.0,
        deviation=deviation,
        missing=True,
        constant=constant,
        standardise=standardise,
        plain=True,
    )
    values = {"fill": 9.0, "missing": "mean", "marks_missing": True, "constant": constant}
    assert fitted == Number(name="c", read_as="number", mean=scaling[0], scale=scaling[1], **values)
    assert notes == ()


def categories_of(count, *, others=0, distinct=None, missing=False, keep=False):
    """The categories that have a feature, or why the column is left out."""
    fitted, _ = category(
        "c",
        count,
        others=others,
        distinct=len(count) if distinct is None else distinct,
        missing=missing,
        numbers=False,
        keep=keep,
    )
    return fitted.why if isinstance(fitted, LeftOut) else fitted.categories if isinstance(fitted, Category) else None


@pytest.mark.parametrize(
    ("count", "others", "missing", "categories"),
    [
        ({"a": 9, "b": 1}, 0, False, ("a", "b")),
        ({"a": 9}, 0, True, ("(missing)", "a")),
        ({"a": 9}, 1, False, ("a",)),  # the other rows are all zeros
        ({}, 1, True, ("(missing)",)),
        ({"a": 9}, 0, False, "it is constant in the training rows"),
        ({}, 0, True, "it has no value in the training rows"),
        ({}, 0, False, "it has no value in the training rows"),
        ({}, 9, False, "none of its words is frequent enough to be named"),
    ],
)
def test_a_column_needs_two_kinds_of_rows(count, others, missing, categories):
    """count: rows of each word that may have a feature; others: rows with words that may not."""
    assert categories_of(count, others=others, missing=missing, distinct=2) == categories


def test_an_identifier_is_known_by_the_words_that_have_no_feature_too():
    """19 of 21 rows have a word of their own: 90.5 %; of 22 rows, 86 %."""
    assert "19 distinct words in 21 rows" in categories_of({"a": 2, "b": 2}, others=17, distinct=19)
    assert categories_of({"a": 2, "b": 3}, others=17, distinct=19) == ("a", "b")
    assert categories_of({"a": 2, "b": 2}, others=17, distinct=19, keep=True) == ("a", "b")


def test_of_equally_frequent_categories_the_first_have_a_feature():
    """Of 300 words every second one has two rows: all 150 of these have a feature, and the first 50 of the others."""
    count = {f"w{k:03}": 1 + k % 2 for k in range(300)}
    assert MOST == 200
    assert categories_of(count, distinct=50) == tuple(w for k, w in enumerate(count) if k % 2 or k < 100)
    fewer = dict(list(count.items())[:MOST])
    fitted, notes = category("c", fewer, others=0, distinct=50, missing=False, numbers=True, keep=False)
    assert (fitted, notes) == (Category(name="c", categories=tuple(fewer), numbers=True), ())


TRAIN = np.array([True] * 4 + [False] * 2)


def encode(values, *, train=TRAIN, **options):
    """(features' names, their values, all notes) of a column."""
    column = pd.Series(values, name="c")
    fitted, told = fit_column(column[train], **options)
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


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 50, 1001])
def test_the_median_is_numpys_to_the_last_bit(count):
    for seed in range(5):
        values = np.random.default_rng(seed).normal(size=count).round(seed)
        before = values.copy()
        assert median_of(values) == np.median(values)
        assert (values == before).all()


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
