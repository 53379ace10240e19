"""Boosted trees for all against LightGBM on pooled rows, and intercepts against their equation.

The independent reference in double precision is LightGBM for the trees and scipy for the intercepts.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import lightgbm
import numpy as np
import pytest
from scipy.optimize import minimize

from idiolect.algorithms.base import Cohort
from idiolect.algorithms.boosted_intercept import BoostedIntercept
from idiolect.algorithms.parts import boosting
from idiolect.algorithms.parts.bins import ROUNDS
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.runtime import round as round_module
from idiolect.runtime.newcomers import personalize
from tests.algorithms.boosted import (
    SIZES,
    binned_rows,
    forests_of,
    lightgbm_scores,
    outputs_of,
    parts_of,
    rounds_for,
    simulation_of,
    with_words,
)
from tests.federations import run
from tests.tiers import second

OWNER = np.repeat(np.arange(len(SIZES)), SIZES)


def trained(task, trees, parts, **settings):
    """(simulation, state, each client's forest, all rows' scores, all rows' bins)."""
    simulation = simulation_of(parts, task, BoostedIntercept(trees=trees, **settings))
    state = rounds_for(simulation, simulation.init(0), trees)
    forests = forests_of(simulation, state)
    outputs = outputs_of(forests, parts)
    scores = np.concatenate([o if task == "regression" else o[:, 1] for o in outputs])
    return simulation, state, forests, scores, binned_rows(state.shared.model.edges, parts)


def divisions(state):
    """Splits that divide clients."""
    grown = state.shared.model.grown
    return int(((np.asarray(grown.node) >= 0) & (np.asarray(grown.feature) == 5)).sum())


@pytest.mark.second
@pytest.mark.parametrize("sizes", [SIZES, (220, 180, 150)])
def test_regression_trees_with_missing_values_and_divided_clients_are_lightgbms(x64, sizes):
    """The intercepts are held small, so that the trees have to divide the clients; three: one against the rest."""
    parts = parts_of("regression", sizes, missing=0.15, spread=2.0)
    fixed = {"renew": 0, "linear": False, "intercept_penalty": 1e5, "client_rows": 30}
    _, state, forests, got, bins = trained("regression", 4, parts, **fixed)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    start = np.array([float(f.intercept[0] + f.linear[0, 0]) for f in forests])[owner]
    y = np.concatenate([y for _, y in parts])
    settings = {"num_leaves": 15, "learning_rate": 0.1, "min_data_in_leaf": 20, "min_data_per_group": 30}
    expected = lightgbm_scores(bins, y, start, objective="regression", trees=4, clients=owner, **settings)
    assert divisions(state) >= 3
    assert np.ptp(expected - start) > 0.5
    np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.second
def test_logistic_trees_with_divided_clients_are_lightgbms(x64):
    """LightGBM estimates rows from curvatures: limits on rows are off, or too small to matter."""
    sizes = (220, 180, 150, 160, 190, 200, 240)
    parts = parts_of("two", sizes, missing=0.15, spread=2.0)
    fixed = {"renew": 0, "linear": False, "intercept_penalty": 1e5, "client_rows": 1, "client_smoothing": 5.0}
    limits = {"leaves": 5, "min_rows": 0, "min_curvature": 3.0}
    _, state, forests, got, bins = trained("two", 4, parts, **fixed, **limits)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    start = np.array([float(f.intercept[0] + f.linear[0, 0]) for f in forests])[owner]
    settings = {"num_leaves": 5, "learning_rate": 0.1, "min_data_in_leaf": 0, "min_sum_hessian_in_leaf": 3.0}
    settings |= {"min_data_per_group": 1, "cat_smooth": 5.0}
    y = np.concatenate([y for _, y in parts])
    expected = lightgbm_scores(bins, y, start, objective="binary", trees=4, clients=owner, **settings)
    assert divisions(state) >= 3
    np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.second
@pytest.mark.parametrize(("divided", "kinds"), [(False, 6), (False, 40), (True, 6), (True, 40)])
def test_regression_trees_with_native_categories_are_lightgbms(x64, kinds, divided):
    """A column of categories is divided by sets; rows of no category go right; clients may be divided as well."""
    parts = with_words(parts_of("regression", missing=0.1, spread=2.0 if divided else 0.5), "regression", kinds)
    method = BoostedIntercept(
        trees=4, renew=0, linear=False, intercept_penalty=1e5, client_rows=30, client_splits=divided
    )
    simulation = simulation_of(parts, "regression", method, kinds)
    state = rounds_for(simulation, simulation.init(0), 4)
    forests = forests_of(simulation, state)
    got = np.concatenate(outputs_of(forests, parts))
    bins = binned_rows(state.shared.model.edges, parts, kinds)
    start = np.array([float(f.intercept[0] + f.linear[0, 0]) for f in forests])[OWNER]
    y = np.concatenate([y for _, y in parts])
    settings = {"num_leaves": 15, "learning_rate": 0.1, "min_data_in_leaf": 20, "min_data_per_group": 30}
    clients = OWNER if divided else None
    expected = lightgbm_scores(
        bins, y, start, objective="regression", trees=4, clients=clients, words=True, **settings
    )
    grown = state.shared.model.grown
    used = np.asarray(grown.node) >= 0
    by_sets = used & (np.asarray(grown.members) != 0).any(axis=-1)
    assert by_sets.sum() >= 4
    assert (np.asarray(grown.feature)[by_sets] == 0).all()
    assert not (used & (np.asarray(grown.feature) > 0) & (np.asarray(grown.feature) < kinds)).any()
    assert ((used & (np.asarray(grown.feature) == kinds + 5)).sum() > 0) == divided
    np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.second
@pytest.mark.parametrize("task", ["two", "three"])
def test_a_new_client_and_a_client_that_was_away_divide_categories_alike(task):
    """Its trees on the rows of a known client are that client's, in single precision too."""
    parts = with_words(parts_of(task, dtype=np.float32, spread=1.5), "two", 7)
    method = BoostedIntercept(trees=2, leaves=6, client_rows=20, linear=False)
    simulation = simulation_of(parts, task, method, 7)
    state = rounds_for(simulation, simulation.init(0), 2)
    forests = forests_of(simulation, state)
    assert (np.asarray(forests[0].splits.members) != 0).any()
    expected = outputs_of(forests, parts)
    private = jax.tree.map(jnp.zeros_like, state.private)  # as if it had never taken part
    again = outputs_of(forests_of(simulation, replace(state, private=private)), parts)
    new = personalize(simulation, state, simulation_of(parts[:2], task, simulation.algorithm, 7).data)
    made = new.evaluator.client_models(new.state, ("personal",))["personal"]
    for i, (x, _) in enumerate(parts):
        np.testing.assert_allclose(again[i], expected[i], atol=1e-4)
        if i < 2:
            np.testing.assert_allclose(jax.vmap(tree.gather(made, i).forest)(x), expected[i], atol=1e-4)


@pytest.mark.second
def test_few_categories_and_more_than_bins_have_a_split_each(x64):
    """Up to four a split takes one from the rest anyway; those without a bin each cannot be divided by sets."""
    for kinds, bins in ((4, 64), (9, 8)):
        parts = with_words(parts_of("two"), "two", kinds)
        method = BoostedIntercept(trees=1, bins=bins, linear=False)
        model = simulation_of(parts, "two", method, kinds).init(0).shared.model  # growing does not change them
        assert model.categories == ()
        assert model.grown.members is None


def logistic(y, scores):
    return np.sum(np.logaddexp(0, scores) - y * scores)


def test_the_whole_method_is_scipys_intercepts_and_lightgbms_trees_in_turns(x64):
    """Shared linear part with own intercepts by one joint solution; then a tree, all intercepts anew, a tree, ..."""
    parts = parts_of("two")
    settings = {"client_splits": False, "min_rows": 0, "min_curvature": 3.0, "leaf_l2": 0.7, "rate": 0.3}
    _, _, forests, got, bins = trained("two", 3, parts, **settings)
    x, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    z, dummies = np.column_stack([np.ones(len(x)), x]), np.eye(len(parts))[OWNER]

    def joint(v):
        scores = z @ v[:6] + dummies @ v[6:]
        slope = 1 / (1 + np.exp(-scores)) - y
        value = logistic(y, scores) + 1.5 * v[6:] @ v[6:]
        return value, np.concatenate([z.T @ slope, dummies.T @ slope + 3 * v[6:]])

    solution = minimize(joint, np.zeros(6 + len(parts)), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(forests[0].linear[0], solution[:6], atol=1e-5)
    scores, b = z @ solution[:6], solution[6:]
    rules = {"num_leaves": 15, "learning_rate": 0.3, "min_data_in_leaf": 0, "min_sum_hessian_in_leaf": 3.0}
    for _ in range(3):
        after = lightgbm_scores(bins, y, scores + b[OWNER], objective="binary", trees=1, lambda_l2=0.7, **rules)
        scores = after - b[OWNER]
        for i in range(len(parts)):
            mine = i == OWNER
            b[i] = minimize(
                lambda c, mine=mine, scores=scores: logistic(y[mine], scores[mine] + c[0]) + 1.5 * c[0] ** 2,
                [b[i]],
                tol=1e-12,
            ).x[0]
    np.testing.assert_allclose([float(f.intercept[0]) for f in forests], b, atol=1e-4)
    np.testing.assert_allclose(got, scores + b[OWNER], atol=1e-4)


@pytest.mark.second
@pytest.mark.parametrize("penalty", [40.0, second(1e5)])
def test_the_linear_part_is_ridge_regression_with_own_intercepts(x64, penalty):
    """Weights of z = [1, x], the constant without a penalty, and the clients' intercepts by one linear system."""
    parts = parts_of("regression")
    simulation = simulation_of(parts, "regression", BoostedIntercept(trees=1, linear_l2=penalty))
    forest = forests_of(simulation, run(simulation, ROUNDS))[0]
    x, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    z = np.column_stack([np.ones(len(x)), x, np.eye(len(parts))[OWNER]])
    ridge = np.diag([0.0, *[penalty] * 5, *[3.0] * len(parts)])  # the loss is half the squared error
    solution = np.linalg.solve(z.T @ z + ridge, z.T @ y)
    np.testing.assert_allclose(forest.linear[0], solution[:6], atol=1e-5)
    assert (np.abs(solution[1:6]).max() < 0.02) == (penalty > 1e4)


@pytest.mark.second
def test_three_classes_grow_a_tree_each_as_lightgbm_does(x64):
    """With the curvature p (1 - p) of the softmax, given to LightGBM as an objective."""
    parts = parts_of("three")
    simulation = simulation_of(
        parts,
        "three",
        BoostedIntercept(trees=2, renew=0, linear=False, client_splits=False, min_rows=0, min_curvature=3.0),
    )
    state = rounds_for(simulation, simulation.init(0), 2)
    forests = forests_of(simulation, state)
    got = np.concatenate(outputs_of(forests, parts))
    bins, y = binned_rows(state.shared.model.edges, parts), np.concatenate([y for _, y in parts])
    start = np.stack([np.asarray(f.intercept + f.linear[:, 0]) for f in forests])[OWNER]

    def softmax(scores, rows):
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        p = odds / odds.sum(axis=1, keepdims=True)
        return p - np.eye(3)[y], p * (1 - p)

    settings = {"objective": softmax, "num_class": 3, "verbosity": -1, "max_bin": 2000, "min_data_in_bin": 1}
    settings |= {"num_leaves": 15, "learning_rate": 0.1, "min_data_in_leaf": 0, "min_sum_hessian_in_leaf": 3.0}
    settings |= {"feature_pre_filter": False, "boost_from_average": False, "num_threads": 1, "enable_bundle": False}
    rows = lightgbm.Dataset(bins, y, init_score=start.reshape(-1, order="F"), params=settings)
    booster = lightgbm.train(settings, rows, num_boost_round=2)
    np.testing.assert_allclose(got, start + np.asarray(booster.predict(bins, raw_score=True)), atol=1e-5)


@pytest.fixture(scope="module")
def small():
    parts = parts_of("two", dtype=np.float32, spread=1.5)
    method = BoostedIntercept(trees=2, leaves=6, client_rows=20)
    simulation = simulation_of(parts, "two", method)
    return parts, simulation, rounds_for(simulation, simulation.init(0), 2)


@pytest.mark.second
@pytest.mark.parametrize("block", [1, 3])
def test_neither_the_order_of_clients_nor_the_block_matters(small, block):
    parts, simulation, state = small
    expected = outputs_of(forests_of(simulation, state), parts)
    turned = simulation_of(parts[::-1], "two", simulation.algorithm, block=block)
    after = turned.advance(turned.init(0), int(state.round))
    got = outputs_of(forests_of(turned, after), parts[::-1])[::-1]
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-4)


@pytest.mark.second
def test_without_trees_each_intercept_solves_its_equation(small):
    """sum_j (p_j - y_j) + mu b = 0."""
    parts, simulation, _ = small
    state = run(simulation, ROUNDS + 1)
    for (x, y), forest in zip(parts, forests_of(simulation, state), strict=True):
        scores = np.asarray(jax.vmap(forest)(x))[:, 1].astype(float)
        assert abs(np.sum(1 / (1 + np.exp(-scores)) - y) + 3.0 * float(forest.intercept[0])) < 1e-3
        assert float(forest.intercept[0]) != 0


@pytest.mark.second
def test_without_divisions_only_the_sum_of_the_messages_counts(small):
    _, simulation, _ = small
    plain = BoostedIntercept(trees=2, leaves=6, client_splits=False)
    rng, clients = np.random.default_rng(0), len(SIZES)
    view = run(simulation, ROUNDS).shared
    sums = np.abs(rng.normal(size=(clients, plain.size_of(view.model)))).astype(np.float32)
    cohort = Cohort(
        jnp.arange(clients), jnp.asarray(SIZES, float), jnp.ones(clients, bool), clients, jnp.asarray(740.0), clients
    )
    moved = np.zeros_like(sums)
    moved[3] = sums.sum(axis=0)  # all of it from one client
    one, other = (jax.jit(plain.aggregate)(view, cohort, jnp.asarray(m)) for m in (sums, moved))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float), rtol=1e-3, atol=1e-3)


@pytest.mark.second
@pytest.mark.parametrize(("block", "train"), [(1, "cohort"), (1, "all"), (3, "cohort"), (3, "all")])
def test_messages_that_are_added_as_they_are_made_are_those_of_aggregate(monkeypatch, train, block):
    """A cohort whose size differs from round to round, so that some of its rows are padding."""
    parts = parts_of("two", spread=2.0, dtype=np.float32)
    method = BoostedIntercept(trees=2, leaves=4, client_rows=20)
    options = {"cohort": 4, "sampling": "binomial", "train": train, "block": block}
    simulation = simulation_of(parts, "two", method, **options)
    plan, start = simulation.plan, simulation.init(0)

    def after_rounds():
        return jax.jit(lambda state: plan.rounds_until(state, simulation.arrays, jnp.asarray(14), 7))(start)

    got = after_rounds()
    monkeypatch.setattr(round_module, "Summing", type("Nobody", (), {}))
    expected = after_rounds()
    assert int(expected.round) == 14
    assert int((np.asarray(expected.shared.table.order) >= 0).sum()) >= 1
    for a, b in zip(jax.tree.leaves(got.shared), jax.tree.leaves(expected.shared), strict=True):
        np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float), rtol=1e-4, atol=1e-4)
    for a, b in zip(jax.tree.leaves(got.private), jax.tree.leaves(expected.private), strict=True):
        np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float), rtol=1e-4, atol=1e-4)


@pytest.mark.second
def test_what_an_absent_client_would_have_sent_does_not_matter(small):
    """Neither its histograms nor its own sums, by which clients are divided."""
    _, simulation, _ = small
    method, view = simulation.algorithm, run(simulation, ROUNDS).shared
    clients = len(SIZES)
    present = jnp.arange(clients) != 3
    cohort = Cohort(jnp.arange(clients), jnp.asarray(SIZES, float), present, clients, jnp.asarray(740.0), clients)
    # In every bin a client has one row, so that only the clients differ.
    slope = np.array([5.0, -4.0, 3.0, 0.0, -3.0, 4.0, -5.0], np.float32)
    rows = np.prod((4, 5, 65))
    sums = np.zeros((clients, method.size_of(view.model)), np.float32)
    sums[:, : 3 * rows] = np.stack([np.repeat(slope[:, None], rows, 1), *np.ones((2, clients, rows))], -1).reshape(
        clients, -1
    )
    other = sums.copy()
    other[3, : 3 * rows : 3] = 1000
    one, two = (jax.jit(method.aggregate)(view, cohort, jnp.asarray(m)) for m in (sums, other))
    assert int(one.table.split.feature[0, 0]) == 5  # the root divides the clients
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.second
def test_a_client_much_smaller_than_the_largest_has_the_same_model(monkeypatch):
    """It computes with fewer rows of padding, see `by_size`; `own_rows` only makes two programs of it."""
    sizes = (400, 60, 50, 40, 45, 70, 30)
    parts = parts_of("two", sizes, missing=0.1, spread=2.0, dtype=np.float32)
    made = []
    for larger in (2, 10_000):
        monkeypatch.setattr(boosting, "LARGER", larger)
        simulation = simulation_of(parts, "two", BoostedIntercept(trees=2, leaves=4, client_rows=20, own_rows=larger))
        assert simulation.plan.sizes[-2] * 2 <= 400
        made.append((simulation, rounds_for(simulation, simulation.init(0), 2)))
    one, other = (outputs_of(forests_of(*each), parts) for each in made)
    assert divisions(made[0][1]) == divisions(made[1][1])
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.mark.second
def test_a_message_has_no_axis_of_rows():
    """One vector, whose length does not depend on the number of rows; each entry is a sum over rows."""
    shapes = set()
    for size in (30, 57):
        simulation = simulation_of(parts_of("two", (size, 40), dtype=np.float32), "two", BoostedIntercept(trees=2))
        state = simulation.init(0)
        view, private = state.shared, tree.gather(state.private, 0)
        client = simulation.plan.client(simulation.arrays, jnp.asarray(0), state.round)
        message, _ = jax.eval_shape(simulation.algorithm.local, view, private, client, jax.random.key(0))
        shapes.add(message.shape)
    assert shapes == {(max(5 * 512 + 6 + 36, 4 * 5 * 65 * 3),)}


@pytest.mark.second
def test_a_new_client_with_the_rows_of_a_known_one_has_its_model(small):
    """Its intercept and its sides of divisions come from its rows only."""
    parts, simulation, state = small
    assert divisions(state) >= 1
    new = personalize(simulation, state, simulation_of(parts[:3], "two", simulation.algorithm).data)
    made = new.evaluator.client_models(new.state, ("personal",))["personal"]
    for i in range(3):
        x = parts[i][0]
        expected = outputs_of(forests_of(simulation, state), parts)[i]
        np.testing.assert_allclose(jax.vmap(tree.gather(made, i).forest)(x), expected, atol=1e-5)


@pytest.mark.second
def test_a_client_that_was_away_catches_up():
    """A client that takes part in no pass of a tree still has its scores: it computes them when it is asked again."""
    parts = parts_of("two", dtype=np.float32)
    simulation = simulation_of(parts, "two", BoostedIntercept(trees=2, leaves=6), cohort=4)
    state = rounds_for(simulation, simulation.init(0), 2)
    behind = int(np.asarray(state.private.done).min())
    private = jax.tree.map(jnp.zeros_like, state.private)  # as if it had never taken part
    assert behind < 2
    first = outputs_of(forests_of(simulation, state), parts)
    again = outputs_of(forests_of(simulation, replace(state, private=private)), parts)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bins": 256}, "bins = 256 must be from 2 to 255"),
        ({"leaves": 1}, "leaves = 1 must be at least 2"),
        ({"rate": 0.0}, "rate = 0.0 must be greater than 0"),
        ({"client_l2": -1.0}, "client_l2 = -1.0 must not be negative"),
        ({"renew": -1}, "renew = -1 must not be negative"),
    ],
)
def test_refused_in_one_line(settings, message):
    with pytest.raises(ConfigError, match=f"boosted-intercept: {message}"):
        BoostedIntercept(**settings)
