"""What a table is refused for: file, column, row and client are named."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.encode.rows import check_labels, client_names, rows_of_clients, split_of_rows


def series(values: Any, **options: Any) -> pd.Series:
    return pd.Series(values, name="v", **options)


def test_client_names_are_words_and_never_blank() -> None:
    names, notes = client_names(series([3, 10, 3.0]), "t")
    assert names.tolist() == ["3", "10", "3"]
    assert notes == ()
    with pytest.raises(DataError, match="t: column 'v' has a blank client name in row 2"):
        client_names(series(["a", " ", ""]), "t")
    with pytest.raises(DataError, match="column 'v': 1 value is missing, first in row 3; the client of every row"):
        client_names(series(["a", "b", None]), "t")
    with pytest.raises(DataError, match="2 values are missing, first in row 1"):
        client_names(series([None, "b", None]), "t")


def test_spellings_that_look_alike_are_one_client_and_told() -> None:
    names, notes = client_names(series(["ward 0", "ward 0 ", "\u00e9", "e\u0301", "Ward 0"]), "t")
    assert names.tolist() == ["ward 0", "ward 0", "\u00e9", "\u00e9", "Ward 0"]
    assert "5 spellings of 3 clients" in notes[0]
    assert "only in capitals are different clients: ward 0" in notes[1]


def test_the_rows_of_clients_in_natural_order() -> None:
    owners = np.array(["ward 10", "ward 2", "b3", "ward 10", "3", "ward 2", "b"])
    rows = rows_of_clients(owners)
    assert list(rows) == ["3", "b", "b3", "ward 2", "ward 10"]
    assert {name: own.tolist() for name, own in rows.items()} == {
        "3": [4],
        "b": [6],
        "b3": [2],
        "ward 2": [1, 5],
        "ward 10": [0, 3],
    }
    assert list(rows_of_clients(np.array(["a2b10", "a10b1", "a2b9"]))) == ["a2b9", "a2b10", "a10b1"]
    assert list(rows_of_clients(np.array(["w10", "w9", "w010", "w0", "w00"]))) == ["w0", "w00", "w9", "w010", "w10"]
    many = np.array([f"w{number}" for number in range(300)] * 2)
    assert [own.tolist() for own in rows_of_clients(many).values()] == [[row, row + 300] for row in range(300)]
    long = ["9" * 6000, "8" * 6000, "1" + "0" * 6000, "2"]  # longer than Python reads as a number
    assert list(rows_of_clients(np.array(long))) == [long[3], long[1], long[0], long[2]]


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        ([3, 1, 2, 1], [3, 1, 2, 1], "i"),
        ([0.5, 1, 2, 3], [0.5, 1, 2, 3], "f"),
        ([True, False, True, True], ["True", "False", "True", "True"], "U"),
        (["x", "y", "x ", "z"], ["x", "y", "x", "z"], "U"),
        (["1,5", "2", "3,25", "4"], [1.5, 2, 3.25, 4], "f"),
        (["1", "2", "3", "4"], [1, 2, 3, 4], "i"),
        (["1", "2", "3", "no"], ["1", "2", "3", "no"], "U"),
        (pd.array([1, 2, 3, 4], dtype="Int64"), [1, 2, 3, 4], "i"),
        (pd.Categorical(["p", "q", "p", "q"]), ["p", "q", "p", "q"], "U"),
    ],
)
def test_labels_are_integers_numbers_or_words(values: Any, expected: list[Any], kind: str) -> None:
    labels, _ = check_labels(series(values), "t")
    assert labels.tolist() == expected
    assert labels.dtype.kind == kind


def test_labels_that_are_missing_or_infinite() -> None:
    with pytest.raises(DataError, match="column 'v': 1 value is missing, first in row 2; remove these rows"):
        check_labels(series([1, None, 2, 3]), "t")
    with pytest.raises(DataError, match=r"column 'v' is infinite in row 3 \(2 in all\); replace"):
        check_labels(series([1, 2, np.inf, -np.inf]), "t")


def test_the_split_of_every_row() -> None:
    assert split_of_rows(series(["train", " Test ", "VALIDATION"]), "t") == ["train", "test", "validation"]
    with pytest.raises(
        DataError, match=r"t: column 'v' has 'dev' in row 2; a split is one of train, validation, test"
    ):
        split_of_rows(series(["train", "dev", "oops"]), "t")
    with pytest.raises(DataError, match="1 value is missing, first in row 2; every row must be one of train"):
        split_of_rows(series(["train", None]), "t")
