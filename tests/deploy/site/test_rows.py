"""The rows that are a site's own."""

import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.site.rows import rows_of_site

TABLE = pd.DataFrame({"client": ["a", " b ", "a"], "x": [1, 2, 3]})


def test_rows_of_the_site_keep_their_place():
    assert rows_of_site(TABLE, "client", "a", "t").index.tolist() == [0, 2]
    assert rows_of_site(TABLE, "client", "b", "t")["x"].tolist() == [2]
    assert len(rows_of_site(TABLE, "", "z", "t")) == 3
    assert len(rows_of_site(TABLE.drop(columns="client"), "client", "z", "t")) == 3


def test_a_site_that_is_not_there_and_a_column_that_is_not_there():
    with pytest.raises(
        DataError, match="t: no row of column 'client' has the client 'z', it has a, b; name the site"
    ):
        rows_of_site(TABLE, "client", "z", "t")
    with pytest.raises(DataError, match="t: no client column 'ward'"):
        rows_of_site(TABLE, "ward", "a", "t")
