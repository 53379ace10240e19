import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.models.cnn import CNN
from idiolect.models.dense import MLP, LinearRegression, MultinomialLogistic
from idiolect.models.parts import separate

KEY = jax.random.key(0)
DEEP = MLP(2, (2,) * 10, 2, key=KEY)
MLP_ = MLP(3, (4,), 2, key=KEY)
CNN_ = CNN((10, 10), 2, channels=(2, 3), kernel=3, key=KEY)


def paths(part):
    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(part)]


def params(model):
    return eqx.filter(model, eqx.is_inexact_array)


@pytest.mark.parametrize(
    ("model", "head", "expected"),
    [
        (MLP_, "last", [".layers[1].weight", ".layers[1].bias"]),
        (CNN_, "last", [".output.weight", ".output.bias"]),
        (MultinomialLogistic(3, 2, key=KEY), "last", [".linear.weight", ".linear.bias"]),
        (LinearRegression(3, key=KEY), "last", [".linear.weight", ".linear.bias"]),
        (eqx.nn.Linear(3, 2, key=KEY), "last", [".weight", ".bias"]),
        (eqx.nn.Sequential([MLP_, eqx.nn.LayerNorm(2)]), "last", [".layers[1].weight", ".layers[1].bias"]),
        (MLP_, "none", []),
        (MLP_, "all", paths(params(MLP_))),
        (MLP_, "layers[0]", [".layers[0].weight", ".layers[0].bias"]),
        (MLP_, "layers", paths(params(MLP_))),
        (MLP_, "layers[1].bias", [".layers[1].bias"]),
        (CNN_, "convolutions", [f".convolutions[{i}].{name}" for i in (0, 1) for name in ("weight", "bias")]),
        (DEEP, "layers[1]", [".layers[1].weight", ".layers[1].bias"]),  # and not layers[10]
        (MLP_, lambda path, leaf: leaf.ndim == 1, [".layers[0].bias", ".layers[1].bias"]),
        (MLP_, lambda path, leaf: path == "layers[0].weight", [".layers[0].weight"]),
    ],
)
def test_the_head_is_what_was_asked_for_and_the_body_the_rest(model, head, expected):
    whole = params(model)
    body, chosen = separate(whole, head)
    assert paths(chosen) == expected
    assert paths(body) == [path for path in paths(whole) if path not in expected]
    both = tree.merged(chosen, body)
    assert jax.tree.structure(both) == jax.tree.structure(whole)
    for a, b in zip(jax.tree.leaves(both), jax.tree.leaves(whole), strict=True):
        assert a is b


def test_shapes_and_traced_leaves_are_split_like_arrays():
    whole = params(MLP_)
    body, head = separate(jax.eval_shape(lambda: whole))
    assert [leaf.shape for leaf in jax.tree.leaves(body)] == [(4, 3), (4,)]
    assert [leaf.shape for leaf in jax.tree.leaves(head)] == [(2, 4), (2,)]
    traced = jax.jit(jax.vmap(separate))(jax.tree.map(lambda leaf: jnp.stack([leaf, -leaf]), whole))
    for part, expected in zip(traced, separate(whole), strict=True):
        assert paths(part) == paths(expected)
        for a, b in zip(jax.tree.leaves(part), jax.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(a, jnp.stack([b, -b]))


@pytest.mark.parametrize("head", ["layer[0]", "layers[2]", "layers[1", "layers[1].b", "", ".layers[1]"])
def test_an_unknown_path_is_refused_and_the_known_ones_named(head):
    with pytest.raises(ConfigError, match=r"is no part of the model.*layers\[0\].weight, .*layers\[1\].bias"):
        separate(params(MLP_), head)


def test_a_head_that_is_no_part_is_named_as_the_user_calls_it():
    params = {"w": 1.0, "layers": {"bias": 2.0}}
    with pytest.raises(
        ConfigError, match=r"^head = 'lats' is no part of the model; did you mean 'last'\? use one of its"
    ):
        separate(params, "lats")
    with pytest.raises(
        ConfigError, match=r"^mmfl: decoder = 'modle' is no part .*did you mean 'model'\?.* or 'model',"
    ):
        separate(params, "modle", setting="mmfl: decoder", also=("model",))
