from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jax import lax
from jaxtyping import jaxtyped

from idiolect.core.errors import ConfigError
from idiolect.models import conv
from idiolect.models.conv import (
    METHODS,
    Conv2d,
    convolve,
    convolve_im2col,
    convolve_lax,
    correlate,
    max_pool,
    output_size,
    patch_size,
    windows,
)
from tests.models.convolutions import (
    compare,
    draws,
    forward,
    forward_over_reverse,
    gradients,
    loss_of,
    reverse_over_reverse,
)
from tests.tiers import second

# (height, width, in), (kh, kw, in, out): more patch than outputs, and fewer; a kernel as large as its image
SHAPES = [((7, 6, 3), (3, 2, 3, 4)), ((6, 5, 1), (2, 2, 1, 5)), ((4, 4, 2), (4, 4, 2, 3)), ((8, 1, 2), (3, 1, 2, 3))]


def by_lax(x, kernel):
    """`correlate` of one image with one kernel."""
    return lax.conv_general_dilated(x[None], kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))[0]


def by_product(x, kernel):
    return correlate(x[None], kernel)[0]


@pytest.mark.parametrize(("image", "kernel"), SHAPES)
@pytest.mark.parametrize(
    ("axes", "x_lead", "kernel_lead"),
    [
        ([], (), ()),
        second([(0, None)], (5,), ()),  # samples
        ([(0, 0), (0, None)], (2, 5), (2,)),  # clients with kernels of their own, and their samples
        second([(0, None), (0, None)], (2, 5), ()),
        ([(None, 0)], (), (3,)),  # kernels on one image
        ([(0, None), (0, 0), (None, 0), (0, None)], (2, 3, 5), (3, 2)),
    ],
)
def test_it_is_the_convolution_of_lax_with_its_gradients_however_it_is_batched(
    image, kernel, axes, x_lead, kernel_lead
):
    x, w = draws((*x_lead, *image), (*kernel_lead, *kernel))
    compare(gradients, (by_product, by_lax), x, w, axes, 1e-5)


@pytest.mark.parametrize(("x_axis", "kernel_axis"), [(3, None), (3, 4), (None, 2), (-1, -1)])
def test_any_axis_can_be_the_batch(x_axis, kernel_axis):
    """Moved away from the front, it makes the same outputs."""
    x, w = draws((2, 3, 7, 6, 3), (2, 3, 2, 3, 4))
    x = x if x_axis is not None else x[0]
    w = w if kernel_axis is not None else w[0]
    moved = [a if axis is None else jnp.moveaxis(a, 0, axis) for a, axis in ((x, x_axis), (w, kernel_axis))]
    expected = jax.vmap(correlate, [None if axis is None else 0 for axis in (x_axis, kernel_axis)])(x, w)
    got = jax.vmap(correlate, (x_axis, kernel_axis))(*moved)
    np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize(("image", "kernel"), SHAPES[:2])
def test_it_is_exact_in_double_precision(image, kernel):
    with jax.enable_x64(True):
        x, w = draws((2, 5, *image), (2, *kernel), dtype=jnp.float64)
        compare(gradients, (by_product, by_lax), x, w, [(0, 0), (0, None)], 1e-12)


def in_a_loop(loss):
    def step(at, _):
        return jax.tree.map(lambda a, slope: a - 0.01 * slope, at, jax.grad(lambda at: loss(*at))(at)), None

    return lambda x, w: lax.scan(step, (x, w), length=3)[0]


def of_each_sample(loss):
    return jax.vmap(jax.grad(loss, (0, 1)), (0, None))


@pytest.mark.parametrize("function", [forward, forward_over_reverse, reverse_over_reverse, in_a_loop, of_each_sample])
@pytest.mark.parametrize(("image", "kernel"), SHAPES[:2])
def test_derivatives_of_every_kind_are_those_of_lax(function, image, kernel):
    with jax.enable_x64(True):
        samples = (2, 3) if function is of_each_sample else (3,)
        x, w = draws((*samples, *image), kernel, dtype=jnp.float64)
        compare(function, (by_product, by_lax), x, w, [(0, None)], 1e-12)


@pytest.mark.parametrize(("image", "kernel"), SHAPES)
@pytest.mark.parametrize("clients", [(), (2,)])
def test_a_batchs_weight_gradient_is_one_product_over_all_its_places(image, kernel, clients):
    x, w = draws((*clients, 5, *image), (*clients, *kernel))
    axes = [(0, 0)] * len(clients) + [(0, None)]
    program = jax.make_jaxpr(jax.grad(loss_of(by_product, axes), 1))(x, w)
    products = [step for step in program.eqns if step.primitive.name == "dot_general"]
    places = 5 * (image[0] - kernel[0] + 1) * (image[1] - kernel[1] + 1)
    (product,) = products  # the outputs come from the primitive, the images need no gradient
    (contracted, _), (batched, _) = product.params["dimension_numbers"]
    assert [product.invars[0].aval.shape[axis] for axis in contracted] == [places]
    assert len(batched) == len(clients)


def test_windows_are_what_all_of_them_have_in_each_place():
    x = np.arange(2 * 5 * 7.0).reshape(2, 5, 7, 1)
    found = windows(jnp.asarray(x), (3, 2), stride=2)
    assert len(found) == 6
    for number, place in enumerate(found):
        i, j = divmod(number, 2)
        expected = [[x[:, 2 * r + i, 2 * c + j] for c in range(3)] for r in range(2)]
        np.testing.assert_array_equal(place, np.moveaxis(expected, 2, 0))


def test_the_patches_are_counted():
    x, w = jnp.zeros((3, 9, 8, 2)), jnp.zeros((4, 3, 2, 5))
    y = correlate(x, w)
    assert patch_size(x.shape, y.shape) == sum(part.size for part in windows(x, (4, 3))) == 3 * 6 * 6 * 4 * 3 * 2


CONV_SHAPES = [  # image, kernel, stride, padding
    ((9, 7, 3), (3, 3, 3, 4), 1, "VALID"),
    ((8, 9, 2), (2, 3, 2, 3), 1, "SAME"),
    ((10, 9, 2), (3, 2, 2, 3), 2, "VALID"),
    ((11, 8, 2), (3, 2, 2, 3), 3, "SAME"),
]


@pytest.mark.parametrize(("image", "kernel", "stride", "padding"), CONV_SHAPES)
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
        np.testing.assert_allclose(a, b, atol=1e-5 * max(1, np.abs(b).max()))


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


@pytest.mark.parametrize(
    ("image", "kernel"),
    [
        ((13, 12, 2), (5, 5, 2, 9)),
        second((12, 12, 9), (5, 5, 9, 8)),
        ((8, 8, 9), (3, 3, 9, 5)),
        ((6, 6, 3), (1, 1, 3, 9)),
        second((12, 13, 8), (9, 9, 8, 8)),  # too wide for tiles
    ],
)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel_axis", [None, second(0)])
def test_every_method_is_lax_convolution_with_its_gradients(image, kernel, method, kernel_axis):
    """Few channels, by tiles, and neither, with one kernel for all samples or a kernel each."""
    lead = () if kernel_axis is None else (4,)

    def gradients(convolution, x, w):
        mapped = jax.vmap(convolution, (0, kernel_axis))
        return jax.value_and_grad(lambda w, x: jnp.sum(jnp.sin(mapped(x, w))), (0, 1))(w, x)

    with jax.enable_x64(True):
        x, w = draws((4, *image), (*lead, *kernel), dtype=jnp.float64)
        ours = partial(convolve, method=method)
        got, expected = jax.jit(lambda x, w: (gradients(ours, x, w), gradients(convolve_lax, x, w)))(x, w)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


def primitives_of(method, image, kernel):
    """What a batch's loss and gradients are made of."""
    x, w = draws((4, *image), kernel)

    def loss(w, x):
        return jnp.sum(jax.vmap(lambda image: convolve(image, w, method=method))(x) ** 2)

    return str(jax.make_jaxpr(jax.value_and_grad(loss))(w, x))


def test_direct_adds_the_products_of_the_definition():
    """So whoever needs an earlier version's last bits has them."""
    for image, kernel in (((12, 12, 9), (5, 5, 9, 8)), ((12, 12, 1), (5, 5, 1, 8))):
        x, w = draws(image, kernel)
        np.testing.assert_array_equal(convolve(x, w, method="direct"), convolve_im2col(x, w))
        assert "few=True" not in primitives_of("direct", image, kernel)
        assert "spread" not in primitives_of("direct", image, kernel)
    assert "spread" in primitives_of("auto", (12, 12, 9), (5, 5, 9, 8))
    assert "few=True" in primitives_of("auto", (12, 12, 1), (5, 5, 1, 8))


def test_tiles_are_made_once_for_the_outputs_and_the_kernels_gradient():
    text = primitives_of("auto", (12, 12, 9), (5, 5, 9, 8))
    # Tiles of the images, of the kernel and of the outputs' gradient; the outputs and the kernel's gradient.
    # Nobody asks for the images' gradient.
    assert (text.count("spread["), text.count("collect[")) == (3, 2)


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
        second((5, 7, 2), 2, 2, "VALID"),
        second((1, 4, 1), 2, 2, "VALID"),
        ((8, 9, 2), 3, 2, "SAME"),
        ((7, 8, 2), 3, 2, "VALID"),
        second((5, 5, 1), 3, 1, "SAME"),
    ],
)
def test_max_pool_is_reduce_window_forward_and_backward(shape, size, stride, padding):
    (x,) = draws((2, *shape))
    x = -np.abs(x) - 1  # all below zero: a border of zeros would win

    def reference(x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (size, size, 1), (stride, stride, 1), padding)

    def pooled(x):
        return jaxtyped(typechecker=beartype)(max_pool)(x, size, stride=stride, padding=padding)

    def both(of_image, x):
        y, pull = jax.vjp(jax.vmap(of_image), x)
        return y, pull(jnp.cos(jnp.arange(y.size, dtype=jnp.float32)).reshape(y.shape))[0]

    got, expected = jax.jit(lambda x: (both(pooled, x), both(reference, x)))(x)
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
    x = np.random.default_rng(4).integers(-2, 2, (7, 8)).astype(np.float32)  # few values, so many are equal
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


@pytest.mark.parametrize(("size", "stride"), [(2, 2), second(3, 2)])
def test_pooling_has_second_derivatives(size, stride):
    (x,) = draws((6, 6, 2))

    def loss(x, pool):
        return jnp.sum(jnp.sin(pool(x)) * jnp.arange(pool(x).size).reshape(pool(x).shape))

    def reference(x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (size, size, 1), (stride, stride, 1), "VALID")

    def slope(pool):
        return jax.grad(lambda x: jnp.sum(jax.grad(loss)(x, pool) * jnp.cos(x)))

    pooled = slope(lambda x: max_pool(x, size, stride=stride))
    got, expected = jax.jit(lambda x: (pooled(x), slope(reference)(x)))(x)
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
