"""Private trees: each client's decision and trees against LightGBM on its rows, from its shared scores."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.boosted_intercept import BoostedIntercept
from idiolect.algorithms.parts.boosting import Rows
from idiolect.algorithms.parts.private_trees import FOLDS, Limits, joined, private_trees
from idiolect.algorithms.parts.trees import Rules
from idiolect.client.objective import Batch
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.runtime.newcomers import personalize
from tests.algorithms.boosted import (
    binned_rows,
    forests_of,
    lightgbm_scores,
    outputs_of,
    rounds_for,
    simulation_of,
)
from tests.tiers import second

SIZES = (300, 99, 100, 140, 120, 60, 1200)
OWN = {0: 2.0, 1: -2.0, 2: -2.0}
"""The strength of an interaction that only these clients have."""


def made(task, sizes=SIZES, dtype=np.float64, seed=3):
    """Rows with a common slope in one feature; an interaction of two others is `OWN` to three clients."""
    rng, parts = np.random.default_rng(seed), []
    for i, n in enumerate(sizes):
        x = rng.normal(size=(n, 5))
        score = x[:, 0] + OWN.get(i, 0.0) * np.sign(x[:, 3]) * np.where(x[:, 4] < 1, 1, -1)
        y = score + (rng.normal(size=n) if task == "regression" else rng.logistic(size=n))
        y = y if task == "regression" else np.digitize(y, [0.0] if task == "two" else [-1.0, 1.0])
        parts.append((x.astype(dtype), y.astype(dtype if task == "regression" else np.int32)))
    return parts


def trained(task, parts, trees=2, **settings):
    """(simulation, state, each client's forest)."""
    simulation = simulation_of(parts, task, BoostedIntercept(trees=trees, client_splits=False, **settings))
    state = rounds_for(simulation, simulation.init(0), trees)
    return simulation, state, forests_of(simulation, state)


def without(simulation):
    return replace(simulation.algorithm, own_trees=0)


def shared_of(simulation, state, parts, task):
    """Each client's forest without private trees, of the same state."""
    other = simulation_of(parts, task, without(simulation))
    return forests_of(other, state)


def losses(task, y, scores):
    return 0.5 * (y - scores) ** 2 if task == "regression" else np.logaddexp(0, scores) - y * scores


@pytest.mark.parametrize("task", ["regression", second("two")])
def test_who_has_private_trees_and_which_are_as_lightgbm_says(x64, task):
    """LightGBM grows trees from the shared scores without each part of the rows, and predicts that part."""
    parts = made(task)
    limits = {} if task == "regression" else {"min_rows": 0, "min_curvature": 3.0}
    simulation, state, forests = trained(task, parts, own_trees=6, own_leaves=4, rate=0.2, **limits)
    score = lambda outputs: [o if task == "regression" else o[:, 1] for o in outputs]  # noqa: E731
    shared, got = (score(outputs_of(f, parts)) for f in (shared_of(simulation, state, parts, task), forests))
    rules = {"objective": "regression" if task == "regression" else "binary", "trees": 6}
    rules |= {"num_leaves": 4, "learning_rate": 0.2, "min_data_in_leaf": 20 if task == "regression" else 0}
    rules |= {} if task == "regression" else {"min_sum_hessian_in_leaf": 3.0}
    kept = []
    for i, (x, y) in enumerate(parts):
        bins, start = binned_rows(state.shared.model.edges, [(x, y)]), shared[i].astype(float)
        gain = np.zeros(len(y))
        for part in range(FOLDS):
            held = np.arange(len(y)) % FOLDS == part
            after = lightgbm_scores(bins, y, start, among=np.flatnonzero(~held), **rules)
            gain[held] = (losses(task, y, start) - losses(task, y, after))[held]
        kept.append(int(forests[i].done) == 8)
        ratio = gain.mean() / (gain.std(ddof=1) / np.sqrt(len(y)))
        # Equal gains: LightGBM takes another cut, which only rows that are held out can tell apart.
        if abs(ratio - 1) > 0.3:
            assert kept[-1] == (len(y) >= 100 and ratio > 1)
        expected = lightgbm_scores(bins, y, start, **rules) if kept[-1] else start
        np.testing.assert_allclose(got[i], expected, atol=1e-5)
        assert int(forests[i].done) == 2 + 6 * kept[-1]
    assert kept[:4] == [True, False, True, False]  # 99 rows are too few, and the fourth gains nothing


@pytest.fixture(scope="module")
def small():
    parts = made("two", dtype=np.float32)
    simulation, state, forests = trained("two", parts, leaves=6, own_trees=5)
    return parts, simulation, state, forests


@pytest.mark.second
def test_training_is_the_same_and_who_has_no_private_trees_has_the_shared_model_bit_for_bit(small):
    parts, simulation, state, forests = small
    other = simulation_of(parts, "two", without(simulation))
    plain = rounds_for(other, other.init(0), 2)
    for a, b in zip(jax.tree.leaves(state.shared), jax.tree.leaves(plain.shared), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(jax.tree.leaves(state.private), jax.tree.leaves(plain.private), strict=True):
        np.testing.assert_array_equal(a, b)
    bare = forests_of(other, plain)
    assert bare[0].value.shape[0] == 2
    same = [np.array_equal(a, b) for a, b in zip(*(outputs_of(f, parts) for f in (forests, bare)), strict=True)]
    assert same == [int(f.done) == 2 for f in forests]
    assert True in same
    assert False in same


@pytest.mark.second
def test_a_large_client_with_an_interaction_of_its_own_gains_on_new_rows():
    """The others, of whom it is a small part, keep the shared trees from finding it."""
    sizes = (400, 60, 60, 300, 300, 300)
    fresh = made("regression", sizes, np.float32, seed=4)
    parts = made("regression", sizes, np.float32)
    simulation, state, forests = trained("regression", parts, trees=6, own_trees=20)
    shared = shared_of(simulation, state, parts, "regression")
    x, y = fresh[0]
    own, common = (float(np.mean((np.asarray(jax.jit(jax.vmap(f[0]))(x)) - y) ** 2)) for f in (forests, shared))
    assert own < common - 0.05


@pytest.mark.second
@pytest.mark.parametrize("block", [1, 3])
def test_neither_the_order_of_clients_nor_the_block_matters(small, block):
    parts, simulation, _, forests = small
    turned = simulation_of(parts[::-1], "two", simulation.algorithm, block=block)
    after = forests_of(turned, rounds_for(turned, turned.init(0), 2))[::-1]
    assert [int(f.done) for f in after] == [int(f.done) for f in forests]
    for a, b in zip(outputs_of(after, parts), outputs_of(forests, parts), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-4)


@pytest.mark.second
def test_a_new_client_decides_by_its_own_rows(small):
    """With the rows of a known client it has its model; with fewer rows than the largest, the padding differs."""
    parts, simulation, state, forests = small
    new = personalize(simulation, state, simulation_of(parts[2:4], "two", simulation.algorithm).data)
    models = new.evaluator.client_models(new.state, ("personal",))["personal"]
    for i in (2, 3):
        forest = tree.gather(models, i - 2).forest
        assert int(forest.done) == int(forests[i].done)
        np.testing.assert_allclose(jax.vmap(forest)(parts[i][0]), outputs_of(forests, parts)[i], atol=1e-5)


@pytest.mark.second
def test_three_classes_have_a_private_tree_each_and_may_have_more_leaves_than_the_shared(x64):
    """The model's outputs are the shared ones and those of the private trees, each alone."""
    parts = made("three", (300, 200))
    simulation, state, forests = trained("three", parts, leaves=3, own_trees=4, own_leaves=7)
    shared = shared_of(simulation, state, parts, "three")
    assert int(forests[0].done) == 6
    assert forests[0].value.shape == (6, 3, 13)
    for forest, common, (x, _) in zip(forests, shared, parts, strict=True):
        both, first = (np.asarray(jax.jit(jax.vmap(f))(x)) for f in (forest, common))
        own = tree_sum(forest, x)
        np.testing.assert_allclose(both, first + own, atol=1e-9)
        assert np.abs(own).max() > 0.05


def tree_sum(forest, x):
    """The outputs of the trees behind the first two, walked split by split in numpy."""
    node, feature, cut = (np.asarray(a) for a in forest.splits[:3])
    value = np.asarray(forest.value)
    total = np.zeros((len(x), value.shape[1]))
    for t in range(2, int(forest.done)):
        for k in range(value.shape[1]):
            place = np.zeros(len(x), int)
            for s in range(node.shape[2]):
                here = place == node[t, k, s]
                left = x[:, feature[t, k, s]] <= cut[t, k, s]
                place = np.where(here, np.where(left, 2 * s + 1, 2 * s + 2), place)
            total[:, k] += value[t, k][place]
    return total


@pytest.mark.second
def test_private_trees_divide_categories_as_lightgbm_does(x64):
    """A category and a number matter together to the first client only; its trees lie behind the shared ones."""
    rng, parts = np.random.default_rng(0), []
    for i, n in enumerate((400, 300, 350)):
        code, x = rng.integers(0, 6, n), rng.normal(size=(n, 2))
        y = x[:, 0] + (2.0 * np.where(code % 2, 1, -1) if i == 0 else 0.0) + 0.5 * rng.normal(size=n)
        parts.append((np.concatenate([np.eye(6)[code], x], axis=1), y))
    settings = {"trees": 1, "leaves": 3, "linear": False, "client_splits": False, "renew": 0}
    method = BoostedIntercept(**settings, own_trees=4, own_leaves=4, rate=0.2)
    simulation = simulation_of(parts, "regression", method, 6)
    state = rounds_for(simulation, simulation.init(0), 1)
    plain = simulation_of(parts, "regression", without(simulation), 6)
    start = outputs_of(forests_of(plain, state), parts)[0]
    forest, got = forests_of(simulation, state)[0], outputs_of(forests_of(simulation, state), parts)[0]
    assert (np.asarray(forest.splits.members)[1 : int(forest.done)] != 0).any()
    bins = binned_rows(state.shared.model.edges, parts[:1], 6)
    rules = {"num_leaves": 4, "learning_rate": 0.2, "min_data_in_leaf": 20, "min_data_per_group": 20}
    expected = lightgbm_scores(bins, parts[0][1], start, objective="regression", trees=4, words=True, **rules)
    assert np.abs(expected - start).max() > 0.5
    np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.second
def test_a_client_with_too_few_rows_grows_nothing(small):
    """Its loop over trees makes no step: the trees are the empty ones it starts from."""
    parts, _, state, _ = small
    for rows, grows in ((300, True), (301, False)):
        trees, kept = private_of(state, parts[0], Limits(5, 4, rows))
        assert bool((np.asarray(trees.node) >= 0).any()) is grows
        assert (int(kept) == 5) is grows


@pytest.mark.second
def test_nothing_is_grown_before_the_first_shared_tree(small):
    parts, _, state, _ = small
    model = replace(state.shared.model, done=jnp.zeros((), jnp.int32))
    trees, kept = private_of(state, parts[0], Limits(5, 4, 100), model)
    assert not (np.asarray(trees.node) >= 0).any()
    assert int(kept) == 0


def private_of(state, part, limits, model=None):
    """`private_trees` of the first client."""
    own: Rows = jax.jit(tree.gather)(state.private, 0)
    more = len(own.scores) - len(part[1])  # padding, as of a client that is smaller than the largest
    x, y = (np.pad(a, ((0, more), *((0, 0),) * (a.ndim - 1))) for a in part)
    batch = Batch(x, y, (np.arange(len(x)) < len(part[1])).astype(np.float32))
    loss = lambda scores, y: jnp.logaddexp(0.0, scores[0]) - y * scores[0]  # noqa: E731
    rules = Rules(0.0, 1e-3, 0.0, 0.0, 0.0, 20, 0, 0)
    make = jax.jit(lambda m, r, batch: private_trees(m, r, batch, loss, rules, 0.1, limits, 64))
    return make(model or state.shared.model, own, batch)


@pytest.mark.second
def test_no_own_trees_join_none(small):
    """What a client does not keep is nowhere in its model."""
    _, _, state, forests = small
    trees, _ = private_of(state, made("two", dtype=np.float32)[0], Limits(5, 4, 100))
    bare = replace(forests[0], done=jnp.asarray(2, jnp.int32))
    joint = jax.jit(joined)(bare, trees, 0)
    assert int(joint.done) == 2
    assert not (np.asarray(joint.splits.node)[bare.value.shape[0] :] >= 0).any()
    assert not np.asarray(joint.value)[bare.value.shape[0] :].any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"own_trees": -1}, "own_trees = -1 must not be negative"),
        ({"own_leaves": 1}, "own_leaves = 1 must be from 2 to 255"),
        ({"own_rows": -1}, "own_rows = -1 must not be negative"),
    ],
)
def test_refused_in_one_line(settings, message):
    with pytest.raises(ConfigError, match=f"boosted-intercept: {message}"):
        BoostedIntercept(**settings)
