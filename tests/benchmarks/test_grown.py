"""The tables of `benchmarks.grown` grow as they say."""

import pytest

from benchmarks.grown import CLIENTS, table


@pytest.mark.parametrize("more", [0.01, 0.05])
def test_a_grown_table_has_the_rows_of_before_and_so_many_more(more):
    before, after = (table(1, share) for share in (0.0, more))
    assert len(after) == len(before) + int(len(before) * more)
    first = {client: rows.reset_index(drop=True) for client, rows in before.groupby("client")}
    assert len(first) == CLIENTS
    for client, rows in after.groupby("client"):
        kept = rows.reset_index(drop=True).iloc[: len(first[client])]
        assert kept.equals(first[client])
    assert table(1, more).equals(after)
