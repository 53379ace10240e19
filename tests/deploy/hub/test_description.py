"""The description of all sites together: quantiles from cells, and what is said where sites withhold."""

import math

import numpy as np
import pandas as pd
import pytest

from idiolect.deploy.headers import Columns, Histograms
from idiolect.deploy.hub.description import described, grids_of, quantile
from idiolect.deploy.messages import Message
from idiolect.deploy.query import DescribeStudy
from idiolect.deploy.schema.describe import cells, describe

QUERY = DescribeStudy(id="d-00000000", sites=("a", "b", "c"), table={})
K = 5


def test_a_quantile_of_single_values_is_pandas_own_within_its_bounds():
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = rng.integers(0, 30, size=int(rng.integers(1, 40))).astype(float)
        share = float(rng.uniform())
        found = quantile(share, [(value, value, 1) for value in values])
        expected = pd.Series(values).quantile(share)
        assert found.low <= expected + 1e-9
        assert expected <= found.high + 1e-9
        at = share * (len(values) - 1)
        assert (found.low, found.high) == (np.sort(values)[math.floor(at)], np.sort(values)[math.ceil(at)])


def test_a_quantile_of_cells_lies_within_its_bounds():
    rng = np.random.default_rng(0)
    for _ in range(200):
        parts = [rng.lognormal(sigma=1, size=int(rng.integers(5, 200))) for _ in range(3)]
        grid = (float(rng.uniform(-3, 0)), float(rng.uniform(0.05, 1)))
        masses = [cell for part in parts for cell in cells(part, *grid, K)]
        pooled = pd.Series(np.concatenate(parts))
        for share in (0.0, 0.05, 0.5, 0.9, 1.0):
            found, expected = quantile(share, masses), pooled.quantile(share)
            assert found.low is None or found.low <= expected
            assert found.high is None or expected <= found.high


def test_a_quantile_of_many_rows_is_near():
    parts = [np.random.default_rng(seed).normal(seed, 1, 5000) for seed in range(3)]
    masses = [cell for part in parts for cell in cells(part, -10.0, 0.5, K)]
    pooled = pd.Series(np.concatenate(parts))
    for share in (0.05, 0.25, 0.5, 0.75, 0.95):
        found = quantile(share, masses)
        assert abs(found.value - pooled.quantile(share)) < 0.5 / 32
        assert found.high - found.low <= 0.5 / 16


def test_rows_of_which_nothing_is_known_widen_the_bounds():
    known = [(float(n), float(n), 1) for n in range(9)]
    found = quantile(0.5, [*known, (-math.inf, math.inf, 2)])
    assert (found.low, found.high) == (3.0, 5.0)
    assert quantile(0.5, [(-math.inf, math.inf, 9)]).value is None


def answers(tables, **shown):
    made = {site: describe(table.assign(split="train"), site=site, minimum=K) for site, table in tables.items()}
    columns = {
        site: Columns(summary=one.summary.to_dict(), may_show=shown.get(site, False)).message()
        for site, one in made.items()
    }
    return made, columns


def test_grids_of_nearly_equal_tables_are_the_same():
    rng = np.random.default_rng(0)
    tables = {site: pd.DataFrame({"label": [0, 1] * 50, "x": rng.normal(3, 2, 100)}) for site in "abc"}
    first = grids_of(answers(tables)[1])
    later = grids_of(answers({**tables, "c": tables["c"][:-1]})[1])
    assert first == later
    assert first["x"]["width"] == 1.0
    assert [*first] == ["x"]  # the label has two values and no grid


def test_a_site_that_has_other_columns_or_cannot_be_read_is_named():
    rng = np.random.default_rng(0)
    tables = {site: pd.DataFrame({"label": [0, 1] * 50, "x": rng.normal(3, 2, 100)}) for site in "abc"}
    tables["c"] = tables["c"].drop(columns="x")
    _, columns = answers(tables)
    columns["b"] = Message({"summary": {"format": "other"}, "may_show": False})
    found = described(QUERY, columns, {"a": Message({"cells": "none"})}, {})
    assert "is no summary of this version" in found.missing["b"]
    assert "its histograms cannot be read" in found.missing["a"]
    column = next(column for column in found.columns if column.name == "x")
    assert column.rows == 100
    assert column.quantiles[0].value is None


def test_a_summary_in_the_name_of_another_site_is_refused():
    table = pd.DataFrame({"label": [0, 1] * 50, "x": np.arange(100.0)})
    _, columns = answers({"a": table, "b": table})
    found = described(QUERY, {"a": columns["a"], "c": columns["b"]}, {}, {})
    assert found.missing == {"c": "its columns are of 'b'"}


def test_numbers_at_one_site_and_ambiguous_text_at_another_are_read_alike():
    rng = np.random.default_rng(0)
    numbers = rng.integers(100, 900, 100) / 100
    plain = pd.DataFrame({"label": [0, 1] * 50, "x": numbers})
    comma = pd.DataFrame({"label": [0, 1] * 50, "x": [f"{n:.2f}".replace(".", ",") for n in numbers]})
    made, columns = answers({"a": plain, "b": comma})
    grids = grids_of(columns)
    sent = {
        site: Histograms(
            cells={
                "x": tuple(
                    (low if np.isfinite(low) else None, high if np.isfinite(high) else None, rows)
                    for low, high, rows in cells(
                        one.numbers("x", grids["x"]["reading"]), grids["x"]["start"], grids["x"]["width"], K
                    )
                )
            }
        ).message()
        for site, one in made.items()
    }
    column = next(c for c in described(QUERY, columns, sent, {}).columns if c.name == "x")
    assert (column.used, column.withheld) == (200, {})
    assert column.mean == pytest.approx(np.concatenate([numbers, numbers.round(2)]).mean())
    assert abs(column.quantiles[2].value - np.median(numbers)) < 1
