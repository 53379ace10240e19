"""Bins from summed counts against numpy's quantiles of the pooled rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.parts.bins import (
    ROUNDS,
    binned,
    counts_of,
    edges_of,
    no_cells,
    refined,
    width_of,
    with_categories,
)
from tests.tiers import second

MOST = np.finfo(np.float32).max


def edges_from(parts, bins):
    """The edges that the server finds from the sums of the clients' counts."""
    cells = no_cells(parts[0].shape[1], bins)
    for round in range(ROUNDS):
        at = jnp.asarray(round)
        total = sum(jax.jit(counts_of)(cells, at, jnp.asarray(x), jnp.ones(len(x))) for x in parts)
        cells = jax.jit(refined)(cells, at, total)
    return np.asarray(edges_of(cells)), cells


@pytest.mark.parametrize("bins", [second(4), 16, second(64)])
def test_many_values_are_cut_at_the_quantiles_of_all_rows(bins):
    rng = np.random.default_rng(0)
    parts = [rng.normal(loc, scale, (n, 2)).astype(np.float32) for loc, scale, n in ((0, 1, 300), (5, 0.1, 200))]
    edges, cells = edges_from(parts, bins)
    pooled = np.concatenate(parts)
    shares = np.arange(1, bins) / bins
    expected = np.quantile(pooled, shares, axis=0, method="inverted_cdf").T
    assert not np.asarray(cells.exact).any()
    np.testing.assert_allclose(edges, expected, rtol=2**-16)
    np.testing.assert_array_equal(
        binned(jnp.asarray(edges), jnp.asarray(pooled))[0], (pooled[:, :1] > edges[0]).sum(1)
    )


def test_few_values_have_a_bin_each_and_edges_between_them():
    rng = np.random.default_rng(0)
    values = np.array([-3.5, -1e-3, 0.0, 1.0, 1.001, 7e20], np.float32)
    rare = np.concatenate([np.repeat(values, 50), [-0.0, 8e20]]).astype(np.float32)  # one row has the last value
    x = np.column_stack([rng.permutation(rare), rng.integers(0, 2, len(rare))]).astype(np.float32)
    edges, cells = edges_from([x[:40], x[40:]], 8)
    assert np.asarray(cells.exact).all()
    bins = np.asarray(binned(jnp.asarray(edges), jnp.asarray(x)))
    for column, bin in zip(x.T, bins, strict=True):
        np.testing.assert_array_equal(bin, np.unique(column, return_inverse=True)[1])
    assert np.abs(edges[0, 3] - 1.0005) < 1e-4
    assert (edges[0, 7:] == MOST).all()
    assert (edges[1, 1:] == MOST).all()


def test_heavy_values_take_the_quantiles_that_they_hold():
    x = np.concatenate([np.zeros(60), np.arange(1, 41)]).astype(np.float32)[:, None]
    edges, _ = edges_from([x], 10)
    expected = np.unique(np.quantile(x, np.arange(1, 10) / 10, method="inverted_cdf"))
    np.testing.assert_allclose(edges[0][edges[0] < MOST], expected, rtol=2**-16, atol=1e-30)


def test_missing_values_have_the_last_bin_and_padding_does_not_count():
    x = np.array([[1.0], [np.nan], [2.0], [9.0]], np.float32)
    counts = counts_of(no_cells(1, 4), jnp.asarray(0), jnp.asarray(x), jnp.asarray([1.0, 1.0, 1.0, 0.0]))
    assert counts.shape == (1, width_of(4))
    assert float(counts.sum()) == 2
    np.testing.assert_array_equal(binned(jnp.asarray([[1.5, MOST, MOST]]), jnp.asarray(x))[0], [0, 4, 1, 1])


def test_infinity_and_its_neighbours_are_numbers():
    x = np.array([[-np.inf], [0.0], [np.inf], [MOST]], np.float32)
    edges, _ = edges_from([x], 4)
    assert np.isfinite(edges).all()
    assert (np.diff(edges[0]) >= 0).all()


def test_a_column_of_categories_has_its_bins_in_its_first_feature():
    """Rows of no category have the bin of missing values; other features keep their bins."""
    x = jnp.asarray([[5.0, 0, 0, 1, 7], [6.0, 1, 0, 0, 8], [7.0, 0, 0, 0, 9]])
    bins = jnp.asarray(np.full((5, 3), 3), jnp.uint8)
    got = with_categories(bins, x, ((1, 3),), 64)
    np.testing.assert_array_equal(got, [[3, 3, 3], [2, 0, 64], [0, 0, 0], [0, 0, 0], [3, 3, 3]])
    assert got.dtype == jnp.uint8
