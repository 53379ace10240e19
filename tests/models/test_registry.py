import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

import idiolect
from idiolect.core.errors import ConfigError
from idiolect.core.losses import LOSSES, Weighted, cross_entropy
from idiolect.core.plugins import named
from idiolect.core.tree import is_parameter
from idiolect.data import from_arrays, number_own_labels
from idiolect.models.adapt import check_model
from idiolect.models.cnn import CNN
from idiolect.models.dense import MLP, LinearRegression, MultinomialLogistic
from idiolect.models.parts import separate
from idiolect.models.registry import (
    MODELS,
    _provided,
    build,
    complete_spec,
    describe_models,
    l2_of,
    loss_for,
    loss_of,
)
from tests.tiers import second

KEY = jax.random.key(0)
SMALL_CNN = {"name": "cnn", "channels": [2, 3], "kernel": 3, "dense": 4}


@pytest.mark.parametrize(
    ("spec", "shape", "outputs", "task", "kind"),
    [
        ("mlr", (28, 28), 10, "classification", MultinomialLogistic),
        ({"name": "mlr", "init": "zeros"}, (), 2, "classification", MultinomialLogistic),
        ("linear", (5,), 1, "regression", LinearRegression),
        ("mlp", (5,), 1, "regression", MLP),
        ("dnn", (60,), 10, "classification", MLP),
        (SMALL_CNN, (12, 12), 4, "classification", CNN),
        ({**SMALL_CNN, "padding": "SAME"}, (12, 12, 3), 1, "regression", CNN),
        ({**SMALL_CNN, "image_shape": [12, 12]}, (144,), 4, "classification", CNN),
    ],
)
def test_what_is_built_fits_the_data(spec, shape, outputs, task, kind):
    model = build(spec, shape, outputs, task, KEY)
    assert type(model) is kind
    check_model(model, shape, outputs)
    # A site makes its model from shapes alone: what is no parameter must be the same.
    made = eqx.filter_eval_shape(lambda: build(spec, shape, outputs, task, KEY))
    assert eqx.tree_equal(eqx.filter(made, is_parameter, inverse=True), eqx.filter(model, is_parameter, inverse=True))


def is_linear(node):
    return isinstance(node, eqx.nn.Linear)


def shapes(spec, feature_shape, outputs):
    return eqx.filter_eval_shape(lambda: build(spec, feature_shape, outputs, "classification", KEY))


def test_the_options_reach_the_model():
    model = shapes({"name": "mlp", "hidden": [7, 5], "activation": "tanh"}, (4,), 3)
    assert [layer.weight.shape for layer in model.layers] == [(7, 4), (5, 7), (3, 5)]
    assert model.activation is jnp.tanh
    assert shapes("dnn", (4,), 3).layers[0].weight.shape == (100, 4)
    assert not build({"name": "mlr", "init": "zeros"}, (4,), 3, "classification", KEY).linear.weight.any()
    cnn = shapes({**SMALL_CNN, "padding": "SAME"}, (12, 12, 3), 2)
    assert [layer.weight.shape for layer in cnn.convolutions] == [(3, 3, 3, 2), (3, 3, 2, 3)]
    assert cnn.hidden[0].weight.shape == (4, 3 * 3 * 3)
    assert (cnn.pool, cnn.pool_stride, cnn.pool_padding) == (2, 2, "VALID")
    cnn = shapes({**SMALL_CNN, "pool": 3, "pool_stride": 1, "pool_padding": "SAME", "dense": []}, (12, 12), 2)
    assert (cnn.pool, cnn.pool_stride, cnn.pool_padding) == (3, 1, "SAME")
    assert cnn.output.weight.shape == (2, 8 * 8 * 3)


@pytest.mark.parametrize(
    ("spec", "features", "outputs", "flattened", "count"),
    [
        # Table 4 of PFLEGO: 64 filters of 3 x 3 four times, from 28 x 28 to 1 x 1, no hidden layer.
        ("omniglot-cnn", (28, 28, 1), 55, 64, (9 + 1) * 64 + 3 * (576 + 1) * 64 + (64 + 1) * 55),
        # The same table: 64 filters of 5 x 5 twice, from 32 x 32 to 8 x 8, then 384 and 192.
        (
            "pflego-cifar-cnn",
            (32, 32, 3),
            10,
            4096,
            (75 + 1) * 64 + (1600 + 1) * 64 + (4096 + 1) * 384 + (384 + 1) * 192 + (192 + 1) * 10,
        ),
        ({"name": "mlp", "hidden": [200]}, (784,), 62, 784, (784 + 1) * 200 + (200 + 1) * 62),
    ],
)
def test_the_networks_of_pflego_have_the_sizes_of_its_table_4(spec, features, outputs, flattened, count):
    model = shapes(spec, features, outputs)
    assert sum(leaf.size for leaf in jax.tree.leaves(model)) == count
    linear = [leaf for leaf in jax.tree.leaves(model, is_leaf=is_linear) if is_linear(leaf)]
    assert linear[0].weight.shape[1] == flattened
    assert eqx.filter_eval_shape(model, jax.ShapeDtypeStruct(features, jnp.float32)).shape == (outputs,)


def test_a_key_makes_one_model_and_the_default_is_pytorchs():
    a, b = (build("mlp", (9,), 2, "classification", KEY) for _ in range(2))
    c = build("mlp", (9,), 2, "classification", jax.random.key(1))
    for x, y, z in zip(*map(jax.tree.leaves, (a, b, c)), strict=True):
        np.testing.assert_array_equal(x, y)
        assert not (x == z).any()
    assert jnp.abs(a.layers[0].weight).max() <= 1 / 3 < 1.02 * jnp.abs(a.layers[0].weight).max()


@pytest.mark.parametrize("name", ["mlp", second("cnn")])
def test_the_last_layer_alone_can_start_otherwise(name):
    features = (28, 28) if name == "cnn" else (9,)
    plain = build(name, features, 3, "classification", KEY)
    model = build({"name": name, "last_init": "uniform"}, features, 3, "classification", KEY)
    body, head = separate(eqx.filter(model, eqx.is_array))
    for a, b in zip(
        jax.tree.leaves(body), jax.tree.leaves(separate(eqx.filter(plain, eqx.is_array))[0]), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    for leaf in jax.tree.leaves(head):
        assert 0 <= leaf.min() < 0.5 < leaf.max() < 1
    zero = build({"name": name, "last_init": "zeros"}, features, 3, "classification", KEY)
    np.testing.assert_array_equal(zero(jnp.ones(features)), 0)


def test_resolve_fills_in_every_key_and_is_its_own_fixed_point():
    full = complete_spec({"name": "mlp", "hidden": 50})
    shared = {"init": "pytorch", "last_init": None, "l2": 0.0, "loss": None, "class_weights": "none"}
    assert full == {"name": "mlp", "hidden": [50], "activation": "relu", **shared}
    for name in MODELS:
        assert complete_spec(complete_spec(name)) == complete_spec(name)
    given = {"name": "mlr", "l2": 1}
    complete_spec(given)
    assert given == {"name": "mlr", "l2": 1}
    complete_spec("mlp")["hidden"].append(3)
    assert complete_spec("mlp")["hidden"] == [100]


def test_l2_is_validated_and_belongs_to_the_objective():
    assert l2_of("mlr") == 0.0
    assert l2_of({"name": "mlr", "l2": 0.01}) == 0.01
    a = build({"name": "mlr", "l2": 0.5}, (4,), 2, "classification", KEY)
    np.testing.assert_array_equal(a.linear.weight, build("mlr", (4,), 2, "classification", KEY).linear.weight)
    for value in (-1, float("nan"), "x"):
        with pytest.raises(ConfigError, match=r"model\.l2"):
            build({"name": "mlr", "l2": value}, (4,), 2, "classification", KEY)


def test_a_loss_is_named_beside_the_model_and_for_classification_alone():
    assert loss_of("mlr") is None
    assert loss_of({"name": "mlr", "loss": "bce"}) is LOSSES["bce"]
    with pytest.raises(ConfigError, match="unknown loss 'mae'"):
        complete_spec({"name": "mlr", "loss": "mae"})
    with pytest.raises(ConfigError, match="loss 'mse' is for classification"):
        build({"name": "mlp", "loss": "mse"}, (4,), 1, "regression", KEY)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mpl", "unknown model 'mpl'; did you mean 'm"),
        ({"name": "cnnn"}, "did you mean 'cnn'"),
        ({}, "needs a name"),
        ({"name": 3}, "needs a name"),
        ({"name": "mlp", "hiden": [3]}, "unknown key of model mlp 'hiden'; did you mean 'hidden'"),
        ({"name": "mlr", "hidden": [3]}, "unknown key of model mlr 'hidden'"),
        ({"name": "mlp", "hidden": [0]}, r"model\.hidden = \[0\] must be a whole number > 0 or a list of them"),
        ({"name": "mlp", "activation": "relo"}, "did you mean 'relu'"),
        ({"name": "mlp", "init": "zeros"}, "'zeros' cannot train MLP"),
        ({"name": "mlp", "init": "he"}, "unknown initialisation 'he'"),
        ({"name": "mlp", "last_init": "unifrom"}, "unknown initialisation 'unifrom'; did you mean 'uniform'"),
        ({"name": "mlp", "last_init": 3}, r"model\.last_init = 3 must be a name \(.*or null"),
        ({"name": "cnn", "padding": "FULL"}, "unknown padding 'FULL'"),
        ({"name": "cnn", "dense": -5}, r"model\.dense"),
        ("linear", "model linear is for regression, but the labels are for classification; use mlr"),
        ("cnn", r"needs images.*\(4,\)"),
    ],
)
def test_a_bad_specification_gets_one_clear_line(spec, message):
    with pytest.raises(ConfigError, match=message) as caught:
        build(spec, (4,), 3, "classification", KEY)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mlr", (4,), 1, "regression"), "model mlr is for classification, but the labels are for regression"),
        (("mlp", (4,), 2, "regression"), "one output, not 2"),
        (("mlp", (4,), 1, "classification"), "at least two classes, but the data have 1"),
        (("mlp", (4, 0), 2, "classification"), r"\(4, 0\)"),
        (("mlp", (4,), 2, "clasification"), "unknown task.*did you mean 'classification'"),
    ],
)
def test_data_that_do_not_fit_are_named(arguments, message):
    with pytest.raises(ConfigError, match=message):
        build(*arguments, KEY)


def test_every_model_is_described_in_one_line():
    assert describe_models().keys() == MODELS.keys()
    assert all(line and "\n" not in line for line in describe_models().values())


BALANCED = {"name": "mlr", "class_weights": "balanced"}


def lopsided(rows=100):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 2))
    y = (x[:, 0] + rng.normal(size=rows) > 1.6).astype(int)
    return from_arrays({"a": (x, y), "b": (x[::-1] + 0.01, y[::-1])})


def test_the_weights_are_scikit_learns():
    data = lopsided()
    loss = loss_for(BALANCED, data)
    assert isinstance(loss, Weighted)
    expected = compute_class_weight("balanced", classes=np.arange(2), y=data.train.y)
    np.testing.assert_allclose(loss.weights, expected, rtol=1e-12)
    outputs = jax.random.normal(jax.random.key(0), (2,))
    for label in (0, 1):
        one = jnp.asarray(label)
        assert loss(outputs, one) == pytest.approx(expected[label] * float(cross_entropy(outputs, one)), rel=1e-6)
    assert loss_for(BALANCED, data) == loss  # equal weights are one compiled program
    assert loss_for("mlr", data) is None


def test_a_rare_class_is_found():
    data = lopsided()
    found = {
        name: idiolect.run(data, model, "fedavg", rounds=60, metric="balanced-accuracy").scores("global").pooled
        for name, model in (("plain", {"name": "mlr"}), ("balanced", BALANCED))
    }
    assert found["balanced"]["balanced-accuracy"] > found["plain"]["balanced-accuracy"] + 0.1


def test_what_has_no_common_classes_is_refused():
    rng = np.random.default_rng(0)
    for data, model in (
        (from_arrays({"a": (rng.normal(size=(9, 2)), rng.normal(size=9))}), {**BALANCED, "name": "linear"}),
        (number_own_labels(lopsided()), BALANCED),
    ):
        with pytest.raises(ConfigError, match="needs classes that mean the same at all clients"):
            loss_for(model, data)
    with pytest.raises(ConfigError, match=r"model\.class_weights = 'balance'|unknown class weights"):
        loss_for({"name": "mlr", "class_weights": "balance"}, lopsided())


def test_another_package_brings_a_marked_function():
    @named("mine", description="its own", packed=True)
    def mine(spec, feature_shape, num_outputs, key):
        return None

    entry = _provided("mine", mine)
    assert (entry.builder, entry.description, entry.packed) == (mine, "its own", True)
    assert entry.tasks == ("classification", "regression")
    for other in (3, print, build):
        with pytest.raises(ConfigError, match=r"it is not a function marked by named\('mine', description="):
            _provided("mine", other)
