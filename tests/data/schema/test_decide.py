"""What a column becomes, by what is known of its training rows."""

import pytest

from idiolect.data.schema.columns import Category, LeftOut, Number
from idiolect.data.schema.decide import MOST, category, number, unfit_numbers
from idiolect.data.schema.identifiers import Whole

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
