import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.schema.values import guess_reading, numbers_of, text_of, words_of


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["b", " a ", None, "", "b"], ["b", "a", None, None, "b"]),
        ([1.0, 2.5, np.nan], ["1", "2.5", None]),
        ([3, 1, 3], ["3", "1", "3"]),
        ([True, False], ["True", "False"]),
        (pd.Categorical(["y", None, "x"]), ["y", None, "x"]),
        (pd.array([1, None], dtype="Int64"), ["1", None]),
        (pd.array([True, None], dtype="boolean"), ["True", None]),
        (["e\u0301", "\u00e9"], ["\u00e9", "\u00e9"]),
        ([None, None], [None, None]),
        (["", "z"], [None, "z"]),
    ],
)
def test_every_value_is_a_word_or_missing(values, expected):
    assert text_of(pd.Series(values, name="c")).tolist() == expected


def test_the_words_are_sorted_and_coded():
    words = words_of(pd.Series(["b", "a", " b", None]))
    assert words.distinct.tolist() == ["a", "b"]
    assert words.code.tolist() == [1, 0, 1, -1]


@pytest.mark.parametrize("value", [[1], {"a": 1}, np.ones(2), b"x", {1}])
def test_what_is_no_word(value):
    with pytest.raises(DataError, match="column 'c' holds"):
        words_of(pd.Series(["a", value], name="c"))


def series(values, **options):
    return pd.Series(values, name="c", **options)


@pytest.mark.parametrize(
    ("values", "reading", "expected"),
    [
        ([1, 2.5], "number", [1, 2.5]),
        ([True, False], "number", [1, 0]),
        (["1", "2.5", "-3e2", "+.5", "4."], "number", [1, 2.5, -300, 0.5, 4]),
        (["1,5", "2", "-0,25"], "decimal comma", [1.5, 2, -0.25]),
        (["1.234,5", "12"], "decimal comma", [1234.5, 12]),
        (["1,234.5", "12"], "number", [1234.5, 12]),
        (["1,234", "12,345,678"], "number", [1234, 12345678]),
        (["1,234", "5,5"], "decimal comma", [1.234, 5.5]),
        (["0,123", "0,456"], "decimal comma", [0.123, 0.456]),
        (["12 345", "1\u00a0000", "7'000", "3"], "number", [12345, 1000, 7000, 3]),
        (["5.1", "6", "7", "unknown", " ? ", None], "number", [5.1, 6, 7, np.nan, np.nan, np.nan]),
        (["5.1", "unknown", None], "number", [5.1, np.nan, np.nan]),
        (["2020-01-02", "1970-01-01T12:00:00Z", "1969-12-31 18:00"], "date", [18263, 0.5, -0.25]),
        (["31.12.1970", "1.2.1970"], "date d.m.y", [364, 31]),
        (["31/12/1970", "01/02/1970"], "date d/m/y", [364, 31]),
        (["12/31/1970", "02/01/1970"], "date m/d/y", [364, 31]),
        (pd.to_datetime(["1970-01-03"]), "date", [2]),
        (pd.to_datetime(["1970-01-03T02:00"]).tz_localize("Europe/Helsinki"), "date", [2]),
        (pd.to_timedelta(["36h"]), "duration", [1.5]),
        (pd.array([1, None], dtype="Int64"), "number", [1, np.nan]),
    ],
)
def test_how_a_column_is_read(values, reading, expected):
    column = series(values)
    assert guess_reading(column) == reading
    np.testing.assert_allclose(numbers_of(column, reading).values, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b"],
        ["007", "12"],
        ["1", "2", "4+"],
        ["1", "w", "x", "y", "z"],
        ["0", "A", "B", "AB"],
        ["1", "2", "w", "x"],
        ["1,5", "2.5"],
        ["2020-13-45", "2020-01-01"],
        ["unknown", "?"],
        ["1e", "2"],
        pd.Categorical([1, 2]),
        ["1_000", "2"],
        ["NaNa", "0x1F"],
    ],
)
def test_what_stays_text(values):
    assert guess_reading(series(values)) is None


def test_what_may_mean_both_follows_the_file():
    column = series(["1,234", "2,345"])
    assert guess_reading(column, comma_likely=True) == "decimal comma"
    assert numbers_of(column, "decimal comma").values.tolist() == [1.234, 2.345]


def test_words_that_are_no_numbers_are_named():
    assert numbers_of(series(["1", "high", None]), "number").unread == ("high",)


def test_another_type_than_in_training_is_refused():
    for values, reading, message in (
        (pd.to_datetime(["2020-01-01"]), "number", "holds dates, but was read as 'number'"),
        (pd.to_timedelta(["1h"]), "date", "holds durations, but was read as 'date'"),
        ([1, 2], "date", "holds numbers, but dates in training"),
    ):
        with pytest.raises(DataError, match=message):
            numbers_of(series(values), reading)
    with pytest.raises(DataError, match="complex"):
        guess_reading(series([1j]))


def test_durations_are_read_as_a_file_writes_them():
    held = series(pd.to_timedelta(["36h", "1 days 00:00:01.5", None]))
    written = series([None if pd.isna(value) else str(value) for value in held])
    np.testing.assert_array_equal(numbers_of(written, "duration").values, numbers_of(held, "duration").values)
    values, unread = numbers_of(series(["2.5", "long", "12:00:00"]), "duration")
    np.testing.assert_array_equal(values, [2.5, np.nan, 0.5])
    assert unread == ("long",)
    assert np.isnan(numbers_of(series(["9" * 400 + " days", "x" * 5000]), "duration").values).all()
