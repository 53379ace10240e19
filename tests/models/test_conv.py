import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import jaxtyped

from idiolect.core.errors import ConfigError
from idiolect.models import conv
from idiolect.models.conv import Conv2d, convolve, convolve_im2col, convolve_lax, max_pool, output_size

SHAPES = [  # image, kernel, stride, padding
    ((9, 7, 3), (3, 3, 3, 4), 1, "VALID"),
    ((8, 9, 2), (2, 3, 2, 3), 1, "SAME"),
    ((10, 9, 2), (3, 2, 2, 3), 2, "VALID"),
    ((11, 8, 2), (3, 2, 2, 3), 3, "SAME"),
]


def draws(*shapes: tuple[int, ...]) -> list[jax.Array]:
    keys = jax.random.split(jax.random.key(7), len(shapes))
    return [jax.random.normal(key, shape) for key, shape in zip(keys, shapes, strict=True)]


@pytest.mark.parametrize(("image", "kernel", "stride", "padding"), SHAPES)
def test_im2col_is_lax_convolution_forward_and_backward_with_a_kernel_for_each_client(image, kernel, stride, padding):
    clients, batch = 2, 2
    x, w = draws((clients, batch, *image), (clients, *kernel))

    def loss(implementation):
        def of_client(w, x):
            one = jaxtyped(typechecker=beartype)(implementation)
            y = jax.vmap(lambda x: one(x, w, stride=stride, padding=padding))(x)
            return jnp.sum(jnp.sin(y) * jnp.arange(y.size).reshape(y.shape) / y.size), y

        return jax.vmap(jax.value_and_grad(of_client, argnums=(0, 1), has_aux=True))

    got, expected = jax.jit(lambda w, x: (loss(convolve_im2col)(w, x), loss(convolve_lax)(w, x)))(w, x)
    assert got[0][1].shape == expected[0][1].shape
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5 * max(1, float(jnp.abs(b).max())))


def test_a_hand_made_convolution_correlates_without_flipping_the_kernel():
    x = jnp.arange(9.0).reshape(3, 3, 1)
    kernel = jnp.array([[1.0, 10.0], [100.0, 1000.0]]).reshape(2, 2, 1, 1)
    y = convolve(x, kernel)
    # rows of x: 0 1 2 / 3 4 5 / 6 7 8; top left: 0*1 + 1*10 + 3*100 + 4*1000
    np.testing.assert_array_equal(y[..., 0], [[4310, 5421], [7643, 8754]])


def test_accelerators_get_the_convolution_of_lax(monkeypatch):
    taken = []
    monkeypatch.setattr(conv, "convolve_lax", lambda x, w, **kwargs: taken.append(kwargs) or x)
    x, w = draws((5, 5, 1), (3, 3, 1, 1))
    jax.eval_shape(convolve, x, w)
    assert taken == []
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    convolve(x, w, stride=2, padding="SAME")
    assert taken == [{"stride": 2, "padding": "SAME"}]


def test_im2col_has_no_convolution_in_its_gradient():
    x, w = draws((6, 6, 1), (3, 3, 1, 2))
    program = str(jax.make_jaxpr(jax.grad(lambda w: convolve_im2col(x, w, padding="SAME").sum()))(w))
    assert "conv_general_dilated" not in program


@pytest.mark.parametrize(("side", "kernel", "stride", "padding"), [(9, 3, 1, "VALID"), (9, 4, 2, "SAME")])
def test_output_size_is_what_convolve_makes(side, kernel, stride, padding):
    x, w = jnp.zeros((side, side, 1)), jnp.zeros((kernel, kernel, 1, 1))
    y = jax.eval_shape(lambda: convolve(x, w, stride=stride, padding=padding))
    assert y.shape[0] == output_size(side, kernel, stride, padding)


@pytest.mark.parametrize(
    ("shape", "size", "stride", "padding"),
    [
        ((4, 6, 3), 2, 2, "VALID"),
        ((5, 7, 2), 2, 2, "VALID"),
        ((1, 4, 1), 2, 2, "VALID"),
        ((8, 9, 2), 3, 2, "SAME"),
        ((7, 8, 2), 3, 2, "VALID"),
        ((5, 5, 1), 3, 1, "SAME"),
    ],
)
def test_max_pool_is_reduce_window_forward_and_backward(shape, size, stride, padding):
    (x,) = draws((2, *shape))
    x -= 3  # all below zero: a border of zeros would win

    def reference(x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (size, size, 1), (stride, stride, 1), padding)

    def pooled(x):
        return jaxtyped(typechecker=beartype)(max_pool)(x, size, stride=stride, padding=padding)

    def both(of_image):
        y, pull = jax.vjp(jax.vmap(of_image), x)
        return y, pull(jnp.cos(jnp.arange(y.size, dtype=jnp.float32)).reshape(y.shape))[0]

    got, expected = both(pooled), both(reference)
    np.testing.assert_array_equal(got[0], expected[0])
    np.testing.assert_allclose(got[1], expected[1], atol=1e-6)
    assert got[0].shape[1] == output_size(shape[0], size, stride, padding)


def test_the_gradient_of_max_pool_goes_to_the_maximum():
    x = jnp.array([[1.0, 2.0, 9.0], [4.0, 3.0, 9.0]])[..., None]
    gradient = jax.grad(lambda x: 5 * max_pool(x).sum())(x)
    np.testing.assert_array_equal(gradient[..., 0], [[0, 0, 0], [5, 0, 0]])


def shares(x, size, stride, dy):
    """The gradient of pooling one channel, by hand: each window's goes in equal parts to its maxima."""
    gradient = np.zeros_like(x)
    for r in range(dy.shape[0]):
        for c in range(dy.shape[1]):
            at = np.s_[r * stride : r * stride + size, c * stride : c * stride + size]
            top = x[at] == x[at].max()
            gradient[at] += top * (dy[r, c] / top.sum())
    return gradient


@pytest.mark.parametrize(("size", "stride"), [(2, 2), (3, 3), (2, 3), (3, 2), (2, 1)])
def test_equal_maxima_share_the_gradient_equally(size, stride):
    x = np.asarray(jax.random.randint(jax.random.key(4), (7, 8), -2, 2), np.float32)  # few values, so many are equal
    dy = np.cos(np.arange(64.0, dtype=np.float32))[: output_size(7, size, stride) * output_size(8, size, stride)]
    dy = dy.reshape(output_size(7, size, stride), -1)

    @jax.jit
    def both(x):
        _, pull = jax.vjp(lambda x: max_pool(x, size, stride=stride), x)
        slope = jnp.sin(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape)
        _, along = jax.jvp(lambda x: max_pool(x, size, stride=stride), (x,), (slope,))
        return pull(dy[..., None])[0], along

    gradient, along = both(x[..., None])
    expected = shares(x, size, stride, dy)
    assert (expected[expected != 0][:, None] != dy.ravel()).all(axis=1).any()  # there are ties
    np.testing.assert_allclose(gradient[..., 0], expected, atol=1e-6)
    # Forward mode is the transpose of that.
    slope = np.sin(np.arange(x.size, dtype=np.float32)).reshape(x.shape)
    np.testing.assert_allclose(np.sum(along[..., 0] * dy), np.sum(slope * expected), rtol=1e-4)


@pytest.mark.parametrize(("size", "stride"), [(2, 2), (3, 2)])
def test_pooling_has_second_derivatives(size, stride):
    (x,) = draws((6, 6, 2))

    def loss(x, pool):
        return jnp.sum(jnp.sin(pool(x)) * jnp.arange(pool(x).size).reshape(pool(x).shape))

    def reference(x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (size, size, 1), (stride, stride, 1), "VALID")

    def slope(pool):
        return jax.grad(lambda x: jnp.sum(jax.grad(loss)(x, pool) * jnp.cos(x)))

    got, expected = slope(lambda x: max_pool(x, size, stride=stride))(x), slope(reference)(x)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(got, expected, atol=1e-4)


def test_conv2d_adds_its_bias_and_draws_within_pytorchs_bounds():
    layer = eqx.filter_jit(Conv2d)(3, 16, (2, 3), key=jax.random.key(0))
    assert layer.weight.shape == (2, 3, 3, 16)
    limit = 1 / np.sqrt(2 * 3 * 3)
    assert limit * 0.98 < jnp.abs(layer.weight).max() <= limit
    assert jnp.abs(layer.bias).max() <= limit
    y = layer(jnp.zeros((5, 5, 3)))
    np.testing.assert_array_equal(y, jnp.broadcast_to(layer.bias, (4, 3, 16)))
    assert Conv2d(3, 1, 2, use_bias=False, key=jax.random.key(0)).bias is None


def test_conv2d_is_equinoxs_convolution():
    layer = Conv2d(2, 3, 3, stride=2, key=jax.random.key(1))
    theirs = eqx.nn.Conv2d(2, 3, 3, stride=2, key=jax.random.key(1))
    theirs = eqx.tree_at(
        lambda conv: (conv.weight, conv.bias),
        theirs,
        (layer.weight.transpose(3, 2, 0, 1), layer.bias[:, None, None]),
    )
    (x,) = draws((8, 9, 2))
    ours, equinoxs = jax.jit(lambda x: (layer(x), theirs(x.transpose(2, 0, 1)).transpose(1, 2, 0)))(x)
    np.testing.assert_allclose(ours, equinoxs, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "options", "named"),
    [
        ((0, 1, 3), {}, "in_channels"),
        ((1, -1, 3), {}, "out_channels"),
        ((1, 1, (3, 0)), {}, "kernel_size"),
        ((1, 1, 3), {"stride": 0}, "stride"),
        ((1, 1, 3), {"padding": "valid"}, "'valid'"),
    ],
)
def test_conv2d_names_the_bad_size(arguments, options, named):
    with pytest.raises(ConfigError, match=named):
        Conv2d(*arguments, **options, key=jax.random.key(0))
