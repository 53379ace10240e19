"""The rows of a table that are a site's own."""

import numpy as np
import pandas as pd

from idiolect.core.errors import DataError
from idiolect.data.encode.rows import client_names
from idiolect.data.files.table import check_column, column_of
from idiolect.data.schema.columns import some


def rows_of_site(
    table: pd.DataFrame, client: str, site: str, where: str, *, optional: str = "client"
) -> pd.DataFrame:
    """The rows whose client is the site, their index as in the table.

    client: the client column; "" for a table that is the site's own as a whole, as is one without the column
    `optional`. Raises `DataError` if the site has no row.
    """
    if not client or (client == optional and client not in table.columns):
        return table
    check_column(table, client, "client column", where)
    owners, _ = client_names(column_of(table, client), where)
    own = np.flatnonzero(owners == site)
    if len(own) == 0:
        held = some(sorted(set(owners.tolist())))
        raise DataError(
            f"{where}: no row of column '{client}' has the client '{site}', it has {held}; name the site so, or give "
            "client = '' if all rows are the site's"
        )
    return table.iloc[own]
