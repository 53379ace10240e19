"""A forest against a walk down each tree in numpy; its file needs nothing but itself."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.models.client_model import load_model
from idiolect.models.files import save_model
from idiolect.models.forest import Forest, Splits, is_member, packed
from tests.tiers import second

FEATURES, TREES, SPLITS = 3, 4, 3


def forest_of(task: str, outputs: int, seed: int = 0, *, words: bool = False) -> Forest:
    """Random trees: split 0 at the root, split 1 at its right child, split 2 at node 3, or none.

    words: the last two features are those of a column of categories, which every split by them divides.
    """
    rng, scores = np.random.default_rng(seed), {0: 1, 2: 1}.get(outputs, outputs)
    shape = (TREES, scores, SPLITS)
    node = np.broadcast_to([0, 2, 3], shape).copy()
    node[-1, :, 2] = -1
    splits = Splits(
        jnp.asarray(node, jnp.int32),
        jnp.asarray(rng.integers(0, FEATURES + 1, shape), jnp.int32),
        jnp.asarray(rng.normal(size=shape), jnp.float32),
        jnp.asarray(rng.random(shape) < 0.5),
        None,
    )
    categories = None
    if words:
        sets = rng.integers(1, 4, shape) + 2**31  # the last bit is that of no category
        members = np.where(np.asarray(splits.feature) == 1, sets, 0)[..., None]
        splits = splits._replace(members=jnp.asarray(members, jnp.uint32))
        categories = jnp.asarray([[1, 2]], jnp.int32)
    real = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)  # noqa: E731
    sides, value = jnp.asarray(rng.random(shape) < 0.5), real(TREES, scores, 2 * SPLITS + 1)
    return Forest(
        splits, value, sides, real(scores, 1 + FEATURES), real(scores), jnp.asarray(TREES - 1), categories, outputs
    )


def walked(forest: Forest, x: np.ndarray) -> np.ndarray:
    """The scores of one sample, node by node."""
    scores = np.asarray(forest.intercept) + np.asarray(forest.linear) @ np.nan_to_num(np.concatenate([[1], x]))
    for tree in range(int(forest.done)):
        for score in range(len(scores)):
            node, feature, cut, missing = (np.asarray(leaf[tree, score]) for leaf in forest.splits[:4])
            members = forest.splits.members
            place = 0
            while place in node.tolist():
                k = node.tolist().index(place)
                if feature[k] == FEATURES:
                    left = forest.sides[tree, score, k]
                elif members is not None and feature[k] == 1:
                    word = int(members[tree, score, k, 0])
                    left = (x[1] > 0.5 and word & 1) or (x[1] <= 0.5 < x[2] and word & 2)
                else:
                    left = missing[k] if np.isnan(x[feature[k]]) else x[feature[k]] <= cut[k]
                place = 2 * k + (1 if left else 2)
            scores[score] += forest.value[tree, score, place]
    return scores


@pytest.mark.parametrize(("task", "outputs"), [("regression", 0), ("classification", 2), ("classification", 3)])
def test_a_sample_walks_down_each_finished_tree(task, outputs):
    forest = forest_of(task, outputs)
    x = np.random.default_rng(1).normal(size=(50, FEATURES)).astype(np.float32)
    x[::4, 1] = np.nan
    got = np.asarray(jax.jit(jax.vmap(forest))(jnp.asarray(x)))
    scores = np.stack([walked(forest, row) for row in x])
    expected = {0: scores[:, 0], 2: np.column_stack([np.zeros(50), scores[:, 0]]), 3: scores}[outputs]
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_a_set_of_categories_goes_left():
    """Samples of the first category, of the second, and of none, which goes right."""
    forest, rng = forest_of("regression", 0, words=True), np.random.default_rng(2)
    x = rng.normal(size=(60, FEATURES)).astype(np.float32)
    x[:, 1:] = np.eye(3, 2)[np.arange(60) % 3]
    got = jax.jit(jax.vmap(forest))(jnp.asarray(x))
    np.testing.assert_allclose(got, np.stack([walked(forest, row) for row in x])[:, 0], atol=1e-5)
    assert (np.asarray(forest.splits.members) != 0).any()


def test_bits_are_the_truth_values_that_were_packed():
    inside = np.random.default_rng(0).random(71) < 0.4
    words = packed(jnp.asarray(inside))
    assert words.shape == (3,)
    np.testing.assert_array_equal(is_member(words, jnp.arange(71)), inside)


def test_an_infinite_value_goes_where_a_very_large_one_goes():
    forest = eqx.tree_at(lambda f: f.linear, forest_of("regression", 0), jnp.zeros((1, 1 + FEATURES)))
    large, infinite = jnp.full(FEATURES, 1e30), jnp.full(FEATURES, jnp.inf)
    np.testing.assert_array_equal(forest(large), forest(infinite))


@pytest.mark.parametrize("words", [second(False), True])
@pytest.mark.parametrize(("task", "outputs"), [("regression", 1), ("classification", 2), ("classification", 3)])
def test_a_file_is_self_contained(task, outputs, words, tmp_path):
    forest = forest_of(task, 0 if task == "regression" else outputs, words=words)
    save_model(tmp_path / "a.safetensors", forest, feature_shape=(FEATURES,), num_outputs=outputs, task=task)
    loaded = load_model(tmp_path / "a.safetensors")
    assert jax.tree.structure(loaded.module) == jax.tree.structure(forest)
    x = np.random.default_rng(1).normal(size=(20, FEATURES)).astype(np.float32)
    expected = np.asarray(jax.vmap(forest)(jnp.asarray(x))).reshape(20, -1)
    np.testing.assert_array_equal(loaded.outputs(x), expected)


@pytest.mark.parametrize(
    "forest",
    [
        eqx.tree_at(lambda f: f.intercept, forest_of("regression", 0), jnp.zeros(2)),
        eqx.tree_at(lambda f: f.categories, forest_of("regression", 0, words=True), jnp.zeros((1, 3), jnp.int32)),
        eqx.tree_at(lambda f: f.categories, forest_of("regression", 0, words=True), None),
        eqx.tree_at(
            lambda f: f.splits.members,
            forest_of("regression", 0, words=True),
            jnp.zeros((TREES, 1, 2, 1), jnp.uint32),
        ),
    ],
)
def test_other_arrays_are_no_forest(forest, tmp_path):
    save_model(tmp_path / "a.safetensors", forest, feature_shape=(FEATURES,), num_outputs=1, task="regression")
    with pytest.raises(StoreError, match="a user's own module"):
        load_model(tmp_path / "a.safetensors")
