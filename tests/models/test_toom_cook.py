from collections.abc import Callable
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from idiolect.core.errors import ConfigError
from idiolect.models.conv import correlate
from idiolect.models.toom_cook import (
    TILES,
    Tiling,
    correlate_by_tiles,
    multiply_p,
    over_places,
    tile_sizes,
    transform,
)
from tests.models.convolutions import (
    compare,
    draws,
    forward,
    forward_over_reverse,
    gradients,
    reverse_over_reverse,
)
from tests.tiers import second

CASES = [(m, r) for m in TILES for r in (2, 3, 4, 5)]


@pytest.mark.parametrize(("m", "r"), CASES)
def test_the_transform_is_exact_in_fractions(m: int, r: int) -> None:
    """A' [(G g) * (B' d)] is y_i = sum_j d_{i+j} g_j, coefficient by coefficient; thirds are rounded only once."""
    outputs, kernel, inputs = (
        [[Fraction(c).limit_denominator(10_000) for c in row] for row in matrix] for matrix in transform(m, r)
    )
    n = m + r - 1
    for i in range(m):
        for j in range(r):
            for d in range(n):
                got = sum(outputs[p][i] * kernel[p][j] * inputs[p][d] for p in range(n))
                assert got == (1 if d == i + j else 0), (i, j, d)


def by_lax(x: jax.Array, kernel: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def by_tiles(sizes: tuple[int, int]) -> Callable[[jax.Array, jax.Array], jax.Array]:
    return lambda x, kernel: correlate_by_tiles(x, kernel, sizes)


# Images (n, height, width, in), kernel (kh, kw, in, out), sizes: whole tiles, cut tiles, one axis, unequal sides.
SHAPES = [
    ((2, 12, 12, 3), (5, 5, 3, 4), (4, 4)),
    ((2, 9, 8, 3), (3, 3, 3, 2), (4, 2)),
    ((3, 11, 1, 2), (5, 1, 2, 3), (3, 1)),
    ((1, 7, 10, 2), (2, 5, 2, 2), (3, 4)),
    ((2, 4, 5, 2), (4, 3, 2, 3), (2, 2)),  # one row of outputs
]


@pytest.mark.parametrize(("images", "kernel", "sizes"), [*SHAPES[:3], *(second(*shapes) for shapes in SHAPES[3:])])
@pytest.mark.parametrize("function", [gradients, forward, second(forward_over_reverse), reverse_over_reverse])
def test_it_is_the_convolution_of_lax_with_all_its_derivatives(images, kernel, sizes, function) -> None:
    with jax.enable_x64(True):
        x, w = draws(images, kernel, dtype=jnp.float64)
        compare(function, (by_tiles(sizes), by_lax), x, w, [], 1e-11)


@pytest.mark.parametrize(
    ("axes", "x_lead", "kernel_lead"),
    [
        ([(0, None)], (5,), ()),  # samples
        ([(0, 0), (0, None)], (2, 5), (2,)),  # clients with kernels of their own, and their samples
        ([(0, None), (0, None)], (2, 5), ()),
        ([(None, 0)], (), (3,)),  # kernels on the same images
        ([(0, None), (0, 0), (None, 0), (0, None)], (2, 3, 5), (3, 2)),
    ],
)
def test_it_may_be_batched_in_every_way(axes, x_lead, kernel_lead) -> None:
    images, kernel, sizes = SHAPES[1]
    with jax.enable_x64(True):
        x, w = draws((*x_lead, *images), (*kernel_lead, *kernel), dtype=jnp.float64)
        compare(gradients, (by_tiles(sizes), by_lax), x, w, axes, 1e-11)


def test_samples_under_vmap_are_one_product_that_moves_nothing() -> None:
    """The batch stays beside the tiles, in front of and behind the product."""
    x, kernel = draws((6, 12, 12, 8), (5, 5, 8, 8))
    mapped = jax.vmap(lambda image: correlate_by_tiles(image[None], kernel, (4, 4))[0])
    primitives = [step.primitive.name for step in jax.make_jaxpr(mapped)(x).jaxpr.eqns]
    assert (primitives.count("spread"), primitives.count("collect")) == (2, 1)  # images and kernel, outputs
    between = primitives[primitives.index("spread") : primitives.index("collect")]
    assert "transpose" not in between


@pytest.mark.parametrize(("side", "width", "step"), [(8, 4, 4), (11, 8, 4), (9, 5, 2), (3, 6, 4), (7, 3, 3)])
def test_collect_is_the_transpose_of_spread(side: int, width: int, step: int) -> None:
    """<spread(x), y> = <x, collect(y)>, for windows that overlap once, twice or not, and beyond the last place."""
    rng = np.random.default_rng(0)
    matrix = tuple(map(tuple, rng.normal(size=(3, width)).tolist()))
    count = max(-(-(side - width) // step), 0) + 1
    tiling = Tiling(side, count, step, matrix)
    with jax.enable_x64(True):
        x, y = jnp.asarray(rng.normal(size=(2, side, 5))), jnp.asarray(rng.normal(size=(3, 2, count, 5)))
        spread, collected = jax.jit(lambda x, y: (tiling.spread(x, 1), tiling.collect(y, 0, 1)))(x, y)
        assert spread.shape == y.shape
        assert collected.shape == x.shape
        assert np.vdot(spread, y) == pytest.approx(np.vdot(x, collected), rel=1e-12)
        padded = np.pad(np.asarray(x), ((0, 0), (0, step * (count - 1) + width), (0, 0)))
        windows = [padded[:, step * t : step * t + width] for t in range(count)]
        expected = np.stack([np.einsum("pw,nwc->pnc", np.asarray(matrix), one) for one in windows], 2)
        np.testing.assert_allclose(spread, expected, atol=1e-12)


@pytest.mark.parametrize(("axis", "kernel_axis"), [(0, 3), (2, 1), (None, 2), (3, None)])
def test_products_may_be_batched_along_any_axis(axis: int | None, kernel_axis: int | None) -> None:
    """5 products of 4 points, 6 tiles, 3 and 2 channels."""
    tiles, kernels = draws((5, 4, 6, 3), (5, 4, 3, 2))
    sides, expected = [], []
    for side, along in ((tiles, axis), (kernels, kernel_axis)):
        sides.append(side[0] if along is None else jnp.moveaxis(side, 0, along))
        expected.append(jnp.broadcast_to(side[0], side.shape) if along is None else side)
    found = jax.vmap(multiply_p.bind, (axis, kernel_axis))(*sides)
    np.testing.assert_allclose(found, np.matmul(*expected), atol=1e-5)


@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (5, 3)])
def test_over_places_is_a_transposed_product_in_each_group(rows: int, columns: int) -> None:
    """Whichever side is the narrow one."""
    a, b = draws((4, 7, rows), (4, 7, columns))
    np.testing.assert_allclose(over_places(a, b), np.einsum("gpr,gpc->grc", a, b), atol=1e-5)


# Root mean square errors, relative, of outputs and of the two gradients, in float32 against float64.
@pytest.mark.parametrize("m", TILES)
@pytest.mark.parametrize("r", [3, second(4), second(5)])
def test_errors_of_each_transform_are_bounded(r: int, m: int) -> None:
    with jax.enable_x64(True):
        x, kernel = draws((8, 14, 14, 16), (r, r, 16, 32), dtype=jnp.float64)

        @partial(jax.jit, static_argnums=(0, 1))
        def all_of(convolution, dtype, *at):
            y, back = jax.vjp(convolution, *(one.astype(dtype) for one in at))
            return y, *back(jnp.cos(jnp.arange(y.size, dtype=dtype)).reshape(y.shape))

        exact = all_of(by_lax, jnp.float64, x, kernel)
        for dtype, limit in ((jnp.float32, 1e-5), (jnp.float64, 1e-13)):
            found = all_of(by_tiles((m, m)), dtype, x, kernel)
            for a, b in zip(found, exact, strict=True):
                assert a.dtype == dtype
                assert np.sqrt(np.mean((np.asarray(a) - b) ** 2) / np.mean(np.asarray(b) ** 2)) < limit


def test_the_tiles_have_the_fewest_products_and_are_taken_only_where_they_pay() -> None:
    assert tile_sizes((5, 5, 32, 64), (8, 8)) == (4, 4)
    assert tile_sizes((3, 3, 64, 64), (7, 7)) == (4, 4)  # two tiles of 6 points; three of 3 would take 15
    assert tile_sizes((3, 3, 64, 64), (3, 3)) == (3, 3)
    assert tile_sizes((3, 3, 64, 64), (14, 6)) == (4, 3)
    assert tile_sizes((5, 1, 32, 32), (40, 1)) is None  # two fifths of the products
    assert tile_sizes((3, 3, 64, 64), (1, 1)) is None  # the definition takes 9 products, F(2, 3) 16
    assert tile_sizes((1, 1, 64, 64), (8, 8)) is None
    assert tile_sizes((5, 5, 1, 32), (24, 24)) is None
    assert tile_sizes((5, 5, 32, 4), (24, 24)) is None
    assert tile_sizes((7, 7, 32, 32), (24, 24)) is None


def test_more_points_than_there_are_are_refused() -> None:
    transform(4, 7)
    with pytest.raises(ConfigError, match="needs 10 points; there are 9"):
        transform(4, 8)


def test_it_takes_the_products_that_it_says() -> None:
    """F(4, 5) on 8 x 8 outputs: 64 points x 4 tiles in the place of 64 places x 25."""
    x, kernel = draws((1, 12, 12, 8), (5, 5, 8, 8))
    traced = jax.make_jaxpr(lambda *at: correlate_by_tiles(*at, (4, 4)))(x, kernel)
    (products,) = [step for step in traced.jaxpr.eqns if step.primitive.name == "multiply"]
    assert products.outvars[0].aval.shape == (64, 4, 8)
    np.testing.assert_allclose(correlate_by_tiles(x, kernel, (4, 4)), correlate(x, kernel), atol=1e-3)
