import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from idiolect.models.conv_product import correlate, patch_size, windows

# (height, width, in), (kh, kw, in, out): more patch than outputs, and fewer; a kernel as large as its image
SHAPES = [((7, 6, 3), (3, 2, 3, 4)), ((6, 5, 1), (2, 2, 1, 5)), ((4, 4, 2), (4, 4, 2, 3)), ((8, 1, 2), (3, 1, 2, 3))]


def by_lax(x, kernel):
    """`correlate` of one image with one kernel."""
    return lax.conv_general_dilated(x[None], kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))[0]


def by_product(x, kernel):
    return correlate(x[None], kernel)[0]


def draws(*shapes, dtype=jnp.float32):
    keys = jax.random.split(jax.random.key(3), len(shapes))
    return [jax.random.normal(key, shape, dtype) for key, shape in zip(keys, shapes, strict=True)]


def loss_of(implementation, axes):
    """A loss that is not linear in the outputs, of images and kernels batched over these axes, innermost last."""
    batched = implementation
    for x_axis, kernel_axis in reversed(axes):
        batched = jax.vmap(batched, (x_axis, kernel_axis))

    def loss(x, kernel):
        y = batched(x, kernel)
        return jnp.sum(jnp.sin(y) * jnp.cos(jnp.arange(y.size, dtype=y.dtype)).reshape(y.shape))

    return loss


def compare(function, x, kernel, axes, tolerance):
    """function(loss) at the same place for both implementations."""
    got, expected = jax.jit(lambda *at: [function(loss_of(f, axes))(*at) for f in (by_product, by_lax)])(x, kernel)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1, float(jnp.abs(b).max())))


@pytest.mark.parametrize(("image", "kernel"), SHAPES)
@pytest.mark.parametrize(
    ("axes", "x_lead", "kernel_lead"),
    [
        ([], (), ()),
        ([(0, None)], (5,), ()),  # samples
        ([(0, 0), (0, None)], (2, 5), (2,)),  # clients with kernels of their own, and their samples
        ([(0, None), (0, None)], (2, 5), ()),
        ([(None, 0)], (), (3,)),  # kernels on one image
        ([(0, None), (0, 0), (None, 0), (0, None)], (2, 3, 5), (3, 2)),
    ],
)
def test_it_is_the_convolution_of_lax_with_its_gradients_however_it_is_batched(
    image, kernel, axes, x_lead, kernel_lead
):
    x, w = draws((*x_lead, *image), (*kernel_lead, *kernel))
    compare(lambda loss: jax.value_and_grad(loss, (0, 1)), x, w, axes, 1e-5)


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
        compare(lambda loss: jax.value_and_grad(loss, (0, 1)), x, w, [(0, 0), (0, None)], 1e-12)


def forward(loss):
    return lambda x, w: jax.jvp(loss, (x, w), (jnp.cos(x), jnp.sin(w)))


def forward_over_reverse(loss):
    return lambda x, w: jax.jvp(jax.grad(loss, (0, 1)), (x, w), (jnp.cos(x), jnp.sin(w)))


def reverse_over_reverse(loss):
    def slope(x, w):
        along_x, along_w = jax.grad(loss, (0, 1))(x, w)
        return jnp.sum(along_x * jnp.cos(x)) + jnp.sum(along_w * jnp.sin(w))

    return jax.grad(slope, (0, 1))


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
        compare(function, x, w, [(0, None)], 1e-12)


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
