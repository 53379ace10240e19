"""Each client's trees against LightGBM on its rows only, and its constant against its equation."""

import jax
import numpy as np
import pytest
from scipy.optimize import brentq

from idiolect.algorithms.local_trees import LocalTrees
from idiolect.core.errors import ConfigError
from idiolect.runtime.newcomers import personalize
from tests.algorithms.boosted import (
    binned_rows,
    forests_of,
    lightgbm_scores,
    outputs_of,
    parts_of,
    simulation_of,
    with_words,
)
from tests.federations import run
from tests.tiers import second

SIZES = (120, 30, 200)


@pytest.mark.parametrize("task", [second("regression"), "two"])
def test_a_client_s_trees_are_lightgbms_on_its_rows(x64, task):
    """A round is a tree; the second client has too few rows for any."""
    parts = parts_of(task, SIZES, missing=0.1)
    simulation = simulation_of(parts, task, LocalTrees(trees=4, leaves=7))
    state = run(simulation, 4)
    forests = forests_of(simulation, state)
    settings = {"num_leaves": 7, "learning_rate": 0.1}
    if task == "regression":
        settings |= {"min_data_in_leaf": 20}
    for i, (forest, got) in enumerate(zip(forests, outputs_of(forests, parts), strict=True)):
        y, b = parts[i][1], float(forest.intercept[0])
        if task == "regression":
            np.testing.assert_allclose(b, y.sum() / (len(y) + 3), atol=1e-9)
        else:
            equation = lambda c, y=y: len(y) / (1 + np.exp(-c)) - y.sum() + 3 * c  # noqa: E731
            np.testing.assert_allclose(b, brentq(equation, -9, 9, xtol=1e-12), atol=1e-7)
            got = got[:, 1]
        if i == 1:
            np.testing.assert_allclose(got, b, atol=1e-12)
        elif task == "regression":
            bins, start = binned_rows(state.private.model.edges[i], parts[i : i + 1]), np.full(len(y), b)
            expected = lightgbm_scores(bins, y, start, objective="regression", trees=4, **settings)
            assert np.ptp(expected) > 0.1
            np.testing.assert_allclose(got, expected, atol=1e-5)
        else:
            assert np.ptp(got) > 0.1


@pytest.mark.second
def test_a_client_s_trees_with_native_categories_are_lightgbms_on_its_rows(x64):
    """Five categories; the smallest group of them that goes one way has 20 rows."""
    parts = with_words(parts_of("regression", SIZES, missing=0.1), "regression", 5)
    simulation = simulation_of(parts, "regression", LocalTrees(trees=4, leaves=7), 5)
    state = run(simulation, 4)
    forests = forests_of(simulation, state)
    settings = {"num_leaves": 7, "learning_rate": 0.1, "min_data_in_leaf": 20, "min_data_per_group": 20}
    for i in (0, 2):
        y, bins = parts[i][1], binned_rows(state.private.model.edges[i], parts[i : i + 1], 5)
        start = np.full(len(y), float(forests[i].intercept[0]))
        expected = lightgbm_scores(bins, y, start, objective="regression", trees=4, words=True, **settings)
        assert (np.asarray(forests[i].splits.members) != 0).any()
        np.testing.assert_allclose(outputs_of(forests, parts)[i], expected, atol=1e-5)


@pytest.mark.second
def test_rounds_after_the_last_tree_change_nothing_and_clients_do_not_matter_to_each_other():
    parts = parts_of("two", SIZES[:3], dtype=np.float32)
    method = LocalTrees(trees=2, leaves=3)
    simulation = simulation_of(parts, "two", method)
    two, three = run(simulation, 2), run(simulation, 3)
    alone = simulation_of(parts[:1], "two", method)
    first = outputs_of(forests_of(simulation, two), parts)
    for a, b in zip(first, outputs_of(forests_of(simulation, three), parts), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    (own,) = outputs_of(forests_of(alone, run(alone, 2)), parts[:1])
    np.testing.assert_allclose(own, first[0], atol=1e-5)
    new = personalize(simulation, two, alone.data)
    forest = new.evaluator.client_models(new.state, ("local",))["local"].forest
    got = jax.vmap(jax.tree.map(lambda leaf: leaf[0], forest))(parts[0][0])
    np.testing.assert_allclose(got, first[0], atol=1e-5)


def test_nothing_is_sent():
    simulation = simulation_of(parts_of("two", SIZES, dtype=np.float32), "two", LocalTrees(trees=2))
    assert not jax.tree.leaves(simulation.init(0).shared)


def test_refused_in_one_line():
    with pytest.raises(ConfigError, match="local-trees: trees = 0 must be greater than 0"):
        LocalTrees(trees=0)
