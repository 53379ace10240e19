"""A table's rows have an identity: pandas' hash of a row, whatever is fitted to it later."""

import numpy as np
import pandas as pd
import pytest
from pandas.util import hash_pandas_object

from idiolect.data.files.table import ParquetColumns, identity_of
from tests.data.sets.test_encoded import mixed
from tests.data.sets.test_table import frame


@pytest.mark.parametrize("make", [frame, mixed, lambda: frame()[["age"]]])
def test_the_identity_is_pandas_hash_of_a_row(make, tmp_path):
    table = make().reset_index(drop=True)
    expected = hash_pandas_object(table, index=False).to_numpy()
    np.testing.assert_array_equal(identity_of(table), expected)
    table.to_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(identity_of(ParquetColumns(tmp_path / "t.parquet")), expected)


def test_values_that_cannot_be_hashed_are_hashed_as_text():
    table = frame().assign(words=[["a", i] for i in range(36)])
    np.testing.assert_array_equal(identity_of(table), hash_pandas_object(table.astype(str), index=False).to_numpy())
    assert len(pd.unique(identity_of(table))) == 36
