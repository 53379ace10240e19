import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import jaxtyped

from idiolect.core.errors import ConfigError
from idiolect.models.dense import ACTIVATIONS, MLP, LinearRegression, MultinomialLogistic

KEY = jax.random.key(0)


def test_logits_are_w_x_plus_b_on_flattened_features():
    model = MultinomialLogistic(6, 3, key=KEY)
    weight, bias = jnp.arange(18.0).reshape(3, 6), jnp.array([1.0, 2.0, 3.0])
    model = eqx.tree_at(lambda m: (m.linear.weight, m.linear.bias), model, (weight, bias))
    x = jnp.arange(6.0)
    call = jaxtyped(typechecker=beartype)(MultinomialLogistic.__call__)
    for shape in ((6,), (2, 3), (1, 2, 3)):
        np.testing.assert_array_equal(call(model, x.reshape(shape)), [56, 147, 238])


def test_regression_is_a_scalar():
    model = LinearRegression(2, key=KEY)
    model = eqx.tree_at(
        lambda m: (m.linear.weight, m.linear.bias), model, (jnp.array([[2.0, 3.0]]), jnp.array([0.5]))
    )
    y = jaxtyped(typechecker=beartype)(LinearRegression.__call__)(model, jnp.array([10.0, 100.0]))
    assert y.shape == ()
    assert y == 320.5
    assert jax.vmap(model)(jnp.ones((4, 2))).shape == (4,)


def test_the_gradient_of_cross_entropy_is_the_textbooks():
    model = MultinomialLogistic(4, 3, key=KEY)
    x = jax.random.normal(KEY, (5, 4))
    y = jnp.array([0, 1, 2, 1, 0])

    @jax.jit
    @jax.grad
    def gradient(model):
        return -jnp.mean(jax.nn.log_softmax(jax.vmap(model)(x))[jnp.arange(5), y])

    got = gradient(model).linear
    exponentials = np.exp(x @ model.linear.weight.T + model.linear.bias)
    error = exponentials / exponentials.sum(1, keepdims=True) - np.eye(3)[y]
    np.testing.assert_allclose(got.weight, error.T @ x / 5, atol=1e-6)
    np.testing.assert_allclose(got.bias, error.mean(0), atol=1e-6)


def test_parameters_are_float32_even_where_x64_is_enabled():
    with jax.enable_x64(True):
        model = MultinomialLogistic(4, 3, key=KEY)
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {jnp.dtype("float32")}


def test_sizes_must_be_positive():
    with pytest.raises(ConfigError, match="in_features"):
        MultinomialLogistic(0, 3, key=KEY)
    with pytest.raises(ConfigError, match="num_outputs"):
        MultinomialLogistic(3, 0, key=KEY)
    with pytest.raises(ConfigError, match="in_features"):
        LinearRegression(-1, key=KEY)


@pytest.mark.parametrize(("hidden", "activation"), [((), "relu"), ((5, 7), "tanh"), ((5, 7), "relu")])
def test_it_is_the_numpy_network(hidden, activation):
    model = MLP(6, hidden, 3, ACTIVATIONS[activation], key=KEY)
    x = jax.random.normal(jax.random.key(1), (2, 3))
    h = np.asarray(x, np.float64).ravel()
    apply = {"relu": lambda v: np.maximum(v, 0), "tanh": np.tanh}[activation]
    for layer in model.layers[:-1]:
        h = apply(np.asarray(layer.weight, np.float64) @ h + np.asarray(layer.bias, np.float64))
    expected = model.layers[-1].weight @ h + model.layers[-1].bias
    got = jaxtyped(typechecker=beartype)(MLP.__call__)(model, x)
    np.testing.assert_allclose(got, expected, atol=1e-6)
    assert [layer.weight.shape[0] for layer in model.layers] == [*hidden, 3]


def test_only_arrays_are_leaves_so_it_vmaps_over_clients():
    models = [MLP(4, (5,), 2, key=key) for key in jax.random.split(KEY, 2)]
    parts = [eqx.partition(model, eqx.is_inexact_array) for model in models]
    assert all(jax.tree.leaves(static) == [] for _, static in parts)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[params for params, _ in parts])
    x = jax.random.normal(KEY, (2, 4))
    got = jax.vmap(lambda params, x: eqx.combine(params, parts[0][1])(x))(stacked, x)
    np.testing.assert_allclose(got, [m(row) for m, row in zip(models, x, strict=True)], atol=1e-6)


@pytest.mark.parametrize("widths", [(0, (5,), 2), (4, (5, 0), 2), (4, (-5,), 2), (4, (5,), 0)])
def test_widths_must_be_positive(widths):
    with pytest.raises(ConfigError, match="must be positive"):
        MLP(*widths, key=KEY)
