"""The best split against a search over all of them; growth in few passes against growth one node at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.parts import trees
from idiolect.algorithms.parts.trees import Rules, asked, goes_left, grown, seedling
from idiolect.models.forest import is_member
from tests.tiers import second

best_split, client_split = jax.jit(trees.best_split, static_argnums=3), jax.jit(trees.client_split, static_argnums=2)


def rules_of(**changes):
    """Rules of a small node."""
    settings = {
        "l2": 0.5, "min_curvature": 0.1, "min_gain": 0.0, "client_smoothing": 2.0, "client_l2": 1.0,
        "min_rows": 3, "client_rows": 4, "client_most": 32,
    }  # fmt: skip
    return Rules(**settings | changes)


def gain(left, total, l2=0.5, parent=0.5):
    """G_L^2 / (H_L + l2) + G_R^2 / (H_R + l2) - G^2 / (H + parent)."""
    right = total - left
    return left[0] ** 2 / (left[1] + l2) + right[0] ** 2 / (right[1] + l2) - total[0] ** 2 / (total[1] + parent)


def rows_of(seed, n=60, features=3, bins=6):
    """Rows' sums and bins; the last bin is that of missing values, which the last feature has none of."""
    rng = np.random.default_rng(seed)
    sums = np.column_stack([rng.normal(size=n), rng.uniform(0.2, 1, n), np.ones(n)])
    at = rng.integers(0, bins + 1, (n, features))
    at[:, -1] = np.minimum(at[:, -1], bins - 1)
    histogram = np.zeros((features, bins + 1, 3))
    for f in range(features):
        np.add.at(histogram[f], at[:, f], sums)
    return sums, at, histogram.astype(np.float32)


@pytest.mark.parametrize("seed", range(5))
def test_the_split_has_the_largest_gain_of_all(seed):
    sums, at, histogram = rows_of(seed)
    total, best = sums.sum(axis=0), (-1.0, None)
    for f in range(at.shape[1]):
        for cut in range(6):
            for missing in (False, True):
                left = (at[:, f] <= cut) | (missing & (at[:, f] == 6))
                if min(left.sum(), (~left).sum()) >= 3 and (found := gain(sums[left].sum(axis=0), total)) > best[0]:
                    best = found, left
    split = best_split(jnp.asarray(histogram), None, rules_of())
    left = np.where(at[:, split.feature] == 6, split.missing, at[:, split.feature] <= split.bin)
    np.testing.assert_allclose(split.gain, best[0], rtol=1e-4)
    np.testing.assert_array_equal(left, best[1])
    np.testing.assert_allclose(split.left, sums[left].sum(axis=0), rtol=1e-4, atol=1e-5)
    expected = [-s[0] / (s[1] + 0.5) for s in (sums[left].sum(axis=0), sums[~left].sum(axis=0))]
    np.testing.assert_allclose(split.values, expected, rtol=1e-4, atol=1e-5)


def test_without_a_side_for_missing_values_they_go_to_more_rows():
    histogram = np.zeros((1, 3, 3), np.float32)
    histogram[0, :2] = [[4.0, 5, 5], [-4.0, 9, 9]]
    split = best_split(jnp.asarray(histogram), None, rules_of())
    assert not bool(split.missing)
    assert bool(best_split(jnp.asarray(histogram[:, [1, 0, 2]]), None, rules_of()).missing)


@pytest.mark.parametrize("limits", [{"min_rows": 40}, {"min_curvature": 1e3}, {"min_gain": 1e6}])
def test_a_node_that_may_not_be_split_has_no_gain(limits):
    assert float(best_split(jnp.asarray(rows_of(0)[2]), None, rules_of(**limits)).gain) < 0


def test_up_to_four_clients_are_divided_one_from_the_rest():
    clients = np.array([[1.0, 5, 5], [-9.0, 8, 8], [2.0, 6, 6]], np.float32)
    total = clients.sum(axis=0)
    split = client_split(jnp.asarray(clients), jnp.asarray(total), 7, rules_of())
    gains = [gain(one, total) for one in clients]
    assert int(split.feature) == 7
    np.testing.assert_allclose(split.gain, max(gains), rtol=1e-5)
    ratio = clients[:, 0] / (clients[:, 1] + 2)
    np.testing.assert_array_equal((ratio > split.low) & (ratio <= split.high), np.arange(3) == np.argmax(gains))


@pytest.mark.parametrize("seed", [0, *map(second, range(1, 4))])
def test_more_clients_are_divided_in_the_order_of_their_ratios(seed):
    """Of all first and last i clients that the limits allow, the largest gain; small clients go right."""
    rng = np.random.default_rng(seed)
    clients = np.column_stack([rng.normal(size=9), *np.tile(rng.integers(1, 12, 9), (2, 1))]).astype(np.float32)
    total, usable = clients.sum(axis=0), np.flatnonzero(clients[:, 2] >= 2)
    split = client_split(jnp.asarray(clients), jnp.asarray(total), 7, rules_of(client_rows=1))
    order = usable[np.argsort((clients[:, 0] / (clients[:, 1] + 2))[usable])]
    most, best = (len(usable) + 1) // 2, (-1.0, np.zeros(0))
    for i in range(1, most + 1):
        for left in (order[:i], order[len(order) - i :]):
            sums = clients[left].sum(axis=0)
            if sums[2] >= 3 and total[2] - sums[2] >= 3 and (found := gain(sums, total, l2=1.5)) > best[0]:
                best = found, np.isin(np.arange(9), left)
    ratio = clients[:, 0] / (clients[:, 1] + 2)
    side = (ratio > split.low) & (ratio <= split.high) & (clients[:, 2] >= split.least)
    np.testing.assert_allclose(split.gain, best[0], rtol=1e-4)
    np.testing.assert_array_equal(side, best[1])


def test_who_goes_left_lies_within_the_limits_and_has_rows():
    """Ratios G / (H + 2): 1 is the lower limit, 3 the upper one; too few rows, and no rows, are right."""
    sums = jnp.asarray([[4.0, 2, 2], [8.0, 2, 2], [12.0, 2, 2], [16.0, 2, 2], [8.0, 2, 1], [4.0, 0, 0]])
    limits = jnp.asarray(1.0), jnp.asarray(3.0)
    left = goes_left(sums, *limits, jnp.asarray(2.0), rules_of())
    np.testing.assert_array_equal(left, [False, True, True, False, False, False])
    left = goes_left(sums, *limits, jnp.asarray(0.0), rules_of())
    np.testing.assert_array_equal(left, [False, True, True, False, True, False])


@pytest.mark.parametrize("seed", [0, *map(second, range(1, 4))])
def test_a_set_of_categories_is_the_best_of_those_that_the_rules_allow(seed):
    """The first feature has 9 categories and a bin for rows without one; other features compete by their gains."""
    rng = np.random.default_rng(seed)
    n, rules = 200, rules_of(client_rows=1)
    sums = np.column_stack([rng.normal(size=n), rng.uniform(0.2, 1, n), np.ones(n)])
    code, other = rng.integers(0, 10, n), rng.integers(0, 9, n)
    sums[:, 0] += rng.normal(size=10)[code]
    histogram = np.zeros((2, 10, 3))
    np.add.at(histogram[0], code, sums)  # the tenth is the bin of missing values
    np.add.at(histogram[1], other, sums)
    split = best_split(jnp.asarray(histogram, jnp.float32), None, rules, ((0, 9),))
    total, groups = sums.sum(axis=0), histogram[0, :9]
    usable = np.flatnonzero(groups[:, 2] >= 2)
    order = usable[np.argsort((groups[:, 0] / (groups[:, 1] + 2))[usable])]
    best = (-1.0, np.zeros(0))
    for i in range(1, (len(usable) + 1) // 2 + 1):
        for left in (order[:i], order[len(order) - i :]):
            side = groups[left].sum(axis=0)
            if side[2] >= 3 and total[2] - side[2] >= 3 and (found := gain(side, total, l2=1.5)) > best[0]:
                best = found, np.isin(np.arange(10), left)
    assert int(split.feature) == 0
    np.testing.assert_allclose(split.gain, best[0], rtol=1e-4)
    np.testing.assert_array_equal(is_member(split.members, jnp.arange(10)), best[1])
    np.testing.assert_allclose(split.left, groups[best[1][:9]].sum(axis=0), rtol=1e-4, atol=1e-5)
    # Where numbers say more, the set is empty.
    histogram[1] = np.asarray([[900.0, 50, 100], *np.zeros((7, 3)), [-900.0, 50, 100], [0, 0, 0]])
    split = best_split(jnp.asarray(histogram, jnp.float32), None, rules, ((0, 9),))
    assert int(split.feature) == 1
    assert not np.asarray(split.members).any()


def test_categories_are_never_cut_as_numbers_are():
    """As numbers, the first four codes against the rest would have a larger gain: with `l2` only."""
    code = np.arange(9)
    groups = np.column_stack([np.where(code < 4, -5.0, 5.0), np.full(9, 3.0), np.full(9, 6.0)])
    histogram = jnp.asarray(np.concatenate([groups, np.zeros((1, 3))])[None], jnp.float32)
    rules = rules_of(client_rows=1)
    split = best_split(histogram, None, rules, ((0, 9),))
    assert float(split.gain) < float(best_split(histogram, None, rules).gain)
    np.testing.assert_array_equal(is_member(split.members, jnp.arange(9)), code < 4)


def grow(x, sums, leaves, most):
    """(splits in order as sets of rows, passes) of a tree on binned rows; most: nodes per pass."""
    rules, table, passes = rules_of(min_rows=2), seedling(leaves), 0
    step = jax.jit(lambda t, a, h: grown(t, a, jax.vmap(lambda one: best_split(one, None, rules))(h), rules))
    while not bool(table.done):
        at = np.asarray(asked(table, most))
        assert (at < 2 * leaves - 1).any()
        parts = members(table, x)
        histogram = np.zeros((most, x.shape[1], 9, 3), np.float32)
        for slot, node in enumerate(at):
            for f in range(x.shape[1]):
                np.add.at(histogram[slot, f], x[parts.get(node, []), f], sums[parts.get(node, [])])
        table, passes = step(table, jnp.asarray(at), jnp.asarray(histogram)), passes + 1
    parts = members(table, x)
    return [tuple(parts[int(node)]) for node in table.order if node >= 0], passes


def members(table, x):
    """The rows of each node."""
    parts = {0: np.arange(len(x))}
    for k, node in enumerate(np.asarray(table.order)):
        if node >= 0:
            rows = parts[int(node)]
            left = x[rows, table.split.feature[node]] <= table.split.bin[node]
            parts |= {2 * k + 1: rows[left], 2 * k + 2: rows[~left]}
    return parts


@pytest.mark.second
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_growth_in_few_passes_is_best_first_growth(seed):
    """One node at a time, with all gains known before each split, in plain numpy."""
    rng = np.random.default_rng(seed)
    x, sums = rng.integers(0, 8, (200, 4)), np.column_stack([rng.normal(size=200), np.ones(200), np.ones(200)])
    sums[:, 0] += np.where(x[:, 0] > 3, 2.0 * (x[:, 1] > 4), -1.0 * (x[:, 2] > 1))

    def best(rows):
        choices = [
            (gain(sums[rows[x[rows, f] <= c]].sum(axis=0), sums[rows].sum(axis=0)), -f, -c)
            for f in range(4)
            for c in range(8)
            if 2 <= (x[rows, f] <= c).sum() <= len(rows) - 2
        ]
        return max(choices, default=(0.0, 0, 0))

    leaves, expected = [np.arange(200)], []
    for _ in range(7):
        chosen = max(range(len(leaves)), key=lambda i: best(leaves[i])[0])
        rows = leaves.pop(chosen)
        _, f, c = best(rows)
        left = x[rows, -f] <= -c
        leaves += [rows[left], rows[~left]]
        expected.append(tuple(rows))
    for most in (1, 3, 8):
        splits, passes = grow(x, sums, 8, most)
        assert splits == expected
        assert passes <= 14
    assert passes <= 7
