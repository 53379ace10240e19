"""What an estimator keeps: models as plain arrays, and the division of its rows."""

import pickle

import equinox as eqx
import jax
import numpy as np

from idiolect.api.fitted import Part, federation, filled, kept, stacked
from idiolect.client.predictor import Predictor, Shared
from idiolect.data import from_arrays


class Pair(Predictor):
    """A predictor with parameters of the run's module inside, and a setting."""

    left: eqx.Module
    weight: jax.Array
    text: str = eqx.field(static=True, default="mean")

    def bound(self, module):
        return module(self.left)


def test_what_is_kept_can_be_pickled_and_is_filled_again():
    """A module whose structure holds a function that cannot be pickled, alone and inside a predictor."""
    mlp = eqx.nn.MLP(2, 1, 3, 1, activation=lambda x: x, key=jax.random.key(0))
    params = eqx.filter(mlp, eqx.is_inexact_array)
    for models in (params, Pair(params, jax.numpy.arange(3)), {"server": (params, jax.numpy.ones(2)), "none": None}):
        again = filled(pickle.loads(pickle.dumps(kept(models, params))), params)
        assert jax.tree.structure(again) == jax.tree.structure(models)
        assert all((a == b).all() for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(models), strict=True))
    assert isinstance(kept(params, params), Part)


def test_a_model_that_all_share_is_kept_once_and_a_groups_model_for_each():
    rows = {"w": np.arange(6.0).reshape(3, 2)}
    np.testing.assert_array_equal(stacked(Shared(rows))["w"], rows["w"][:1])
    np.testing.assert_array_equal(stacked(Shared(rows, jax.numpy.array([0, 1, 0])))["w"], rows["w"])
    assert stacked(rows) is rows


def test_rows_are_held_out_as_from_arrays_does_and_one_is_left_for_training():
    rng = np.random.default_rng(0)
    x, y, rows = rng.normal(size=(30, 2)).astype(np.float32), np.arange(30) % 2, np.arange(30) % 3 % 2
    rows[7] = 2
    mine = federation("rows", x, y, rows, ("a", "b", "c"), "classification", 2, 0.2, seed=5)
    its = from_arrays(
        {name: (x[rows == i], y[rows == i]) for i, name in enumerate("abc")}, test=0, validation=0.2, split_seed=5
    )
    assert mine.validation.sizes.tolist() == [round(0.2 * size) for size in np.bincount(rows)] == [4, 2, 0]
    for name in ("train", "validation"):
        for part in ("x", "y", "offsets"):
            np.testing.assert_array_equal(getattr(mine.split(name), part), getattr(its.split(name), part))
    whole = federation("rows", x, y, rows, ("a", "b", "c"), "classification", 2)
    np.testing.assert_array_equal(whole.train.x, x[np.argsort(rows, kind="stable")])
    assert whole.validation.count == whole.test.count == 0
