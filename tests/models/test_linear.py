import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import jaxtyped

from idiolect.core.errors import ConfigError
from idiolect.models.linear import LinearRegression, MultinomialLogistic

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
