"""A site's description: exact where nothing is withheld, and no count of few rows from any of its totals."""

from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest

from idiolect.deploy.schema.describe import BLOCKS, FEW, cells, describe, protected
from idiolect.deploy.schema.summary import listing

K = 5


def table_of(**columns):
    rows = len(next(iter(columns.values())))
    return pd.DataFrame({"label": np.arange(rows) % 2, **columns, "split": ["train"] * rows})


def column(table, name, minimum=K):
    summary = describe(table, site="a", minimum=minimum).summary
    return next(one for one in summary.columns if one.name == name)


def test_numbers_are_those_of_pandas():
    values = np.random.default_rng(0).normal(50, 9, 200)
    found = column(table_of(x=np.where(np.arange(200) < 20, np.nan, values)), "x")
    (reading,) = found.readings.values()
    rest = pd.Series(values[20:])
    assert (found.count, found.missing, found.few_missing) == (180, 20, False)
    np.testing.assert_allclose(
        [reading.moments.mean, reading.moments.m2], [rest.mean(), rest.var() * 179], rtol=1e-12
    )
    assert reading.whole is None  # no smallest and no largest value


def test_a_few_missing_values_are_in_no_total():
    """Whatever their number is, the counts are the same."""
    values = np.random.default_rng(0).normal(size=60)
    for missing in (1, 4):
        for name, held in {"x": values, "w": np.where(values > 0, "yes", "no")}.items():
            given = pd.Series(held, dtype=object if name == "w" else float)
            given[:missing] = None
            found = column(table_of(**{name: given}), name)
            assert (found.count, found.missing, found.few_missing) == (60, 0, True)
            assert not found.readings or next(iter(found.readings.values())).moments.count == 60
            assert found.words is None or sum(found.words.named.values()) + found.words.withheld_rows == 60
    assert column(table_of(x=np.where(np.arange(60) < K, np.nan, values)), "x").missing == K


def test_a_column_with_few_values_is_withheld():
    values = np.where(np.arange(60) < 3, np.arange(60.0), np.nan)
    found = column(table_of(x=values), "x")
    assert (found.count, found.missing, found.withheld) == (0, 0, "fewer than 5 rows have a value")
    assert column(table_of(x=np.full(60, np.nan)), "x").missing == 60


@pytest.mark.parametrize("ones", [1, 4, 5, 30])
def test_the_mean_of_two_values_says_no_count_of_few_rows(ones):
    found = column(table_of(x=np.where(np.arange(60) < ones, 1.0, 0.0)), "x")
    assert bool(found.readings) is (ones >= K)
    (values,) = found.values.values()
    assert values.named == ({"0.0": 60 - ones, "1.0": ones} if ones >= K else {})
    true = column(table_of(x=np.arange(60) < ones), "x")
    assert bool(true.readings) is (ones >= K)


def test_a_sum_of_squares_of_a_single_row_is_withheld():
    values = np.append(np.random.default_rng(0).normal(size=59), 1e6)
    found = column(table_of(x=values), "x")
    assert found.withheld.startswith("a single row has nearly all")
    assert not found.readings
    assert "1e" not in " ".join(listing(describe(table_of(x=values), site="a").summary))


def test_the_label_is_a_column_like_others():
    rare = table_of(x=np.random.default_rng(0).normal(size=60))
    rare["label"] = np.where(np.arange(60) < 2, "rare", "well")
    summary = describe(rare, site="a").summary
    assert "rare" not in str(summary.to_dict())
    assert "rare'" not in " ".join(listing(summary))


def test_counts_that_are_enough_are_all_named():
    assert protected({"a": 5, "b": 50}, 0, K).named == {"a": 5, "b": 50}
    assert protected({"a": 5, "b": 50}, 0, K).withheld_rows == 0


def test_a_single_rare_value_takes_others_with_it():
    found = protected({"a": 3, "b": 8, "c": 60}, 0, K)
    assert found.named == {"c": 60}
    assert found.withheld_rows == 11


def alternatives(named, rest, words):
    """All counts of the values that are not named, given that the attacker knows which these are, and the rule."""
    unnamed = [word for word in words if word not in named]
    top = min(named.values(), default=rest)
    for counts in product(range(1, min(top, rest) + 1), repeat=len(unnamed)):
        if sum(counts) == rest:
            held = {**named, **dict(zip(unnamed, counts, strict=True))}
            again = protected(held, 0, K)
            if (again.named, again.withheld_rows) == (named, rest):
                yield dict(zip(unnamed, counts, strict=True))


def test_no_withheld_count_follows_from_the_totals():
    """For every table of up to 12 rows per value: whoever knows the rule and all names cannot solve for a cell."""
    hidden = 0
    for counts in product(range(1, 13), repeat=3):
        held = dict(zip("abc", counts, strict=True))
        found = protected(held, 0, K)
        if sum(counts) < K:  # such a column is withheld as a whole
            continue
        if not found.withheld_rows:
            assert min(counts) >= K
            continue
        possible = list(alternatives(found.named, found.withheld_rows, "abc"))
        for word in {*held} - {*found.named}:
            if held[word] < K:
                hidden += 1
                assert len({one[word] for one in possible}) > 1, (held, found)
    assert hidden > 100


def test_no_cell_has_few_rows_and_all_rows_are_in_one():
    rng = np.random.default_rng(0)
    for draw in range(60):
        values = rng.lognormal(sigma=rng.uniform(0.1, 2), size=int(rng.integers(5, 300)))
        deviation = values.std() or 1.0
        found = cells(values, values.mean() - 8 * deviation, deviation / 2, K)
        assert all(rows == 0 or rows >= K for *_, rows in found), draw
        assert all(one[1] == other[0] for one, other in pairwise(found))
        assert (found[0][0], found[-1][1]) == (-np.inf, np.inf)
        for low, high, rows in found:
            assert rows == ((values >= low) & (values < high)).sum()


def test_cells_are_fine_where_rows_are_many():
    values = np.random.default_rng(0).normal(size=20_000)
    found = cells(values, -BLOCKS / 4, 0.5, K)
    middle = [(low, high) for low, high, _ in found if -1 < low < 1]
    assert max(high - low for low, high in middle) == 0.5 / 32


def test_edges_do_not_follow_single_values():
    """A row that moves within its cell changes no cell, and edges lie on the grid."""
    values = np.sort(np.random.default_rng(0).normal(size=40))
    found = cells(values, -8.0, 0.5, K)
    edges = {edge for low, high, _ in found for edge in (low, high) if np.isfinite(edge)}
    assert all((edge * 64).is_integer() for edge in edges)
    low, high, _ = next(cell for cell in found if cell[2] and np.isfinite(cell[0]) and np.isfinite(cell[1]))
    moved = values.copy()
    moved[(moved >= low) & (moved < high)] = np.nextafter(high, low)
    coarse = cells(moved, -8.0, 0.5, K)
    assert sum(rows for *_, rows in coarse) == 40


def test_more_than_few_numbers_have_a_histogram_and_no_counts():
    made = describe(table_of(x=np.arange(60) % (FEW + 1)), site="a")
    assert made.numbers("x", "number") is not None
    made = describe(table_of(x=np.arange(60) % FEW), site="a")
    assert made.numbers("x", "number") is None  # both would give the counts of single numbers
