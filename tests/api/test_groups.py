"""Groups of rows as clients."""

import numpy as np
import pandas as pd
import pytest

from idiolect.api.groups import clients_of, column_of, rows_of
from idiolect.core.errors import ConfigError


def test_each_row_has_its_clients_number_and_an_unknown_one_has_none():
    names = column_of(pd.Series(["b", "a", "b"], index=[7, 8, 9]), 3)
    assert clients_of(names).tolist() == ["a", "b"]
    assert rows_of(["b", "c", "a"], clients_of(names)).tolist() == [1, -1, 0]
    assert rows_of([2.0, 1], np.array([1, 2])).tolist() == [1, 0]  # a column with gaps elsewhere is read as floats


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: column_of(["a"], 2), r"of each of 2 rows; their shape is \(1,\)"),
        (lambda: column_of([["a", "b"]], 2), r"shape is \(1, 2\)"),
        (lambda: column_of(["a", None], 2), "row 1 has no client"),
        (lambda: column_of([1.0, np.nan], 2), "row 1 has no client"),
        (lambda: clients_of(np.array(["a", 1], dtype=object)), "all numbers or all texts"),
        (
            lambda: rows_of(["1"], np.array([1, 2])),
            "groups hold '1', but the clients that fit has seen are such as 1",
        ),
    ],
)
def test_what_names_no_clients_is_told(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
