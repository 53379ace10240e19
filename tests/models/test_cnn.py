import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import jaxtyped

from idiolect.core.errors import ConfigError
from idiolect.models.cnn import CNN, unfolded
from idiolect.models.conv import convolve_lax, max_pool
from tests.tiers import second

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("shape", "options", "count"),
    [
        ((28, 28), {}, 832 + 51_264 + (1024 * 512 + 512) + 5130),
        ((28, 28, 1), {}, 832 + 51_264 + (1024 * 512 + 512) + 5130),
        ((784,), {"image_shape": (28, 28)}, 832 + 51_264 + (1024 * 512 + 512) + 5130),
        ((28, 28), {"padding": "SAME"}, 1_663_370),  # the count that the FedAvg paper gives
        ((32, 32, 3), {}, 2432 + 51_264 + (1600 * 512 + 512) + 5130),
    ],
)
def test_it_takes_images_and_has_the_papers_size(shape, options, count):
    model = eqx.filter_eval_shape(lambda: CNN(shape, 10, **options, key=KEY))
    assert sum(leaf.size for leaf in jax.tree.leaves(model)) == count
    assert eqx.filter_eval_shape(model, jax.ShapeDtypeStruct(shape, jnp.float32)).shape == (10,)


@pytest.mark.parametrize(
    "options",
    [
        {"channels": (3, 4), "kernel": 3, "dense": (6,)},
        second({"channels": (3, 4), "kernel": 3, "dense": (6,), "padding": "SAME"}),
        second({"channels": (3, 2, 4), "kernel": 3, "dense": (), "padding": "SAME"}),
        {"channels": (3,), "kernel": 3, "dense": (6, 5), "pool": 3, "pool_padding": "SAME"},
    ],
)
def test_it_is_the_reference_network_forward_and_backward(options):
    model = eqx.filter_jit(CNN)((11, 10, 2), 3, **options, key=KEY)
    x = jax.random.normal(KEY, (11, 10, 2))
    assert len(model.convolutions) == len(options["channels"])
    assert len(model.hidden) == len(options["dense"])

    def reference(model):
        h = x
        size, padding = options.get("pool", 2), options.get("pool_padding", "VALID")
        for layer in model.convolutions:
            h = jax.nn.relu(convolve_lax(h, layer.weight, padding=options.get("padding", "VALID")) + layer.bias)
            h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (size, size, 1), (2, 2, 1), padding)
        h = h.ravel()
        for layer in model.hidden:
            h = jax.nn.relu(layer.weight @ h + layer.bias)
        return model.output.weight @ h + model.output.bias

    call = jaxtyped(typechecker=beartype)(CNN.__call__)

    @jax.jit
    def both(model):
        out, pull = jax.vjp(lambda model: call(model, x), model)
        expected, expected_pull = jax.vjp(reference, model)
        return (out, pull(jnp.sin(expected))), (expected, expected_pull(jnp.sin(expected)))

    got, expected = both(model)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert np.abs(b).max() > 0
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_the_outputs_are_those_of_a_bias_before_the_pooling_bit_for_bit():
    model = eqx.filter_jit(CNN)((11, 10), 3, channels=(3, 4), kernel=3, dense=(), key=KEY)
    x = jax.random.normal(KEY, (11, 10))

    @jax.jit
    def features(model):
        h = x[..., None]
        for layer in model.convolutions:
            h = jax.nn.relu(max_pool(layer(h)))
        return h.ravel()

    expected = jax.jit(lambda model: model.output(features(model)))(model)
    np.testing.assert_array_equal(jax.jit(lambda model: model(x))(model), expected)


def test_what_relu_makes_zero_has_no_gradient_and_equal_maxima_count_once():
    """An image without contrast: all places of a filter are equal, and one of the filters is below zero."""
    model = eqx.filter_jit(CNN)((6, 6), 1, channels=(2,), kernel=3, dense=(), key=KEY)
    model = eqx.tree_at(
        lambda m: (m.convolutions[0].weight, m.convolutions[0].bias, m.output.weight),
        model,
        (jnp.ones((3, 3, 1, 2)), jnp.array([1.0, -18.0]), jnp.ones((1, 8))),
    )
    slopes = jax.jit(jax.grad(lambda model: model(2 * jnp.ones((6, 6)))[0]))(model).convolutions[0]
    # Four windows a filter; 18 + 1 is above zero, 18 - 18 is zero and has the gradient of relu there, none.
    np.testing.assert_array_equal(slopes.bias, [4, 0])
    np.testing.assert_array_equal(slopes.weight[..., 0, :], np.broadcast_to([8.0, 0.0], (3, 3, 2)))


def test_flattened_images_are_the_same_images():
    @jax.jit
    def outputs(x):
        model = CNN((100,), 2, image_shape=(10, 10), channels=(2, 2), kernel=3, dense=(4,), key=KEY)
        return model(x.ravel()), model(x)

    flat, image = outputs(jnp.arange(100.0).reshape(10, 10))
    np.testing.assert_array_equal(flat, image)


@pytest.mark.parametrize(("padding", "kernel", "smallest"), [("VALID", 5, 16), ("SAME", 5, 4), ("VALID", 3, 10)])
def test_too_small_images_are_named_with_the_size_that_would_do(padding, kernel, smallest):
    options = {"kernel": kernel, "padding": padding, "key": KEY, "dense": (2,)}
    eqx.filter_eval_shape(lambda: CNN((smallest, smallest), 2, **options))
    side = smallest - 1
    with pytest.raises(ConfigError, match=rf"\({side}, {smallest}, 1\).*{smallest}x{smallest}"):
        CNN((side, smallest), 2, **options)


def test_same_padding_is_advised_only_where_it_helps():
    with pytest.raises(ConfigError, match="try padding = 'SAME'"):
        CNN((4, 4), 2, key=KEY)
    with pytest.raises(ConfigError, match="too small") as caught:
        CNN((3, 3), 2, key=KEY)
    assert "SAME" not in str(caught.value)


@pytest.mark.parametrize(
    ("features", "image", "message"),
    [
        ((784,), None, r"\(784,\).*image_shape"),
        ((), None, "needs images"),
        ((2, 3, 4, 5), None, "needs images"),
        ((784,), (28, 27), r"\(28, 27\) has 756 entries.*784"),
    ],
)
def test_features_that_are_no_images_are_refused(features, image, message):
    with pytest.raises(ConfigError, match=message):
        unfolded(features, image)


def test_sizes_must_be_positive():
    with pytest.raises(ConfigError, match=r"dense must be positive, not \[5, 0\]"):
        CNN((28, 28), 10, dense=(5, 0), key=KEY)
    with pytest.raises(ConfigError, match=r"pool must be positive, not \[2, 0\]"):
        CNN((28, 28), 10, pool_stride=0, key=KEY)
    with pytest.raises(ConfigError, match="out_channels"):
        CNN((28, 28), 10, channels=(0, 4), key=KEY)
