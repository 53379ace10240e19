import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.schema.words import text_of, words_of


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
