import numpy as np
import pandas as pd
import pytest

from idiolect.data.schema.identifiers import identifying_numbers, identifying_words
from idiolect.data.schema.words import words_of

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
    assert bool(identifying_numbers(name, np.asarray(values, float))) == found


def test_words_that_name_a_row():
    assert "30 distinct words in 30 rows" in identifying_words(words_of(pd.Series([f"p{k}" for k in range(30)])))
    assert not identifying_words(words_of(pd.Series([f"p{k}" for k in range(19)])))
    assert not identifying_words(words_of(pd.Series([f"p{k % 20}" for k in range(30)])))
    assert identifying_words(words_of(pd.Series([f"p{k}" for k in range(27)] + ["p0"] * 3)))
