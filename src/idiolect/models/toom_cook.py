"""Convolution with fewer products, by Toom and Cook's algorithm (Winograd's minimal filtering), with stride 1.

F(m, r) makes m outputs of a kernel of r numbers from n = m + r - 1 inputs d:

    y = A' [(G g) * (B' d)],   A (n, m), G (n, r), B (n, n)

In two dimensions F(4, 5) takes 6.25 times fewer multiplications than the definition, and F(4, 3) 4 times fewer. The
tiles B' d B are fewer numbers than the patches of im2col: 4 for each pixel in the place of 25, and 2.25 of 9. Of all
images at once the convolution is two linear maps, `spread` (of images and of the kernel) and its kind of transpose
`collect`, and one batched product between them. The product keeps the tiles, so that the kernel's gradient does not
make them again. Each map is the transpose of the other, and a batch of images is more images: derivatives of every
order and mode exist.

(Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import lcm
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from idiolect.core.errors import require

Matrix = tuple[tuple[float, ...], ...]
_POINTS = [Fraction(*pair) for pair in ((0, 1), (1, 1), (-1, 1), (2, 1), (-2, 1), (1, 2), (-1, 2), (3, 1), (-3, 1))]
TILES = (2, 3, 4)
"""The m that are tried. With larger ones float32 loses a further digit, and they are not faster."""


class Transform(NamedTuple):
    """The matrices of F(m, r): outputs A (n, m), kernel G (n, r), inputs B' (n, n)."""

    outputs: Matrix
    kernel: Matrix
    inputs: Matrix


@cache
def transform(m: int, r: int) -> Transform:
    """The matrices of F(m, r), from polynomials at n - 1 points and at infinity; exact until they are rounded once.

    A and G evaluate polynomials of m and of r coefficients; the rows of B' are the coefficients of the polynomials
    that are 1 at one point and 0 at all others. Raises `ConfigError` where the points do not suffice: m + r > 11.
    """
    require(m + r <= len(_POINTS) + 2, f"F({m}, {r}) needs {m + r - 2} points; there are {len(_POINTS)}")
    finite = _POINTS[: m + r - 2]
    inputs: list[list[Fraction]] = []
    for i, point in enumerate(finite):
        others = [other for j, other in enumerate(finite) if j != i]
        scale = _product(point - other for other in others)
        inputs.append([c / scale for c in _with_roots(others)] + [Fraction(0)])
    inputs.append(_with_roots(finite))
    kernel = [[point**k for k in range(r)] for point in finite] + [[Fraction(0)] * (r - 1) + [Fraction(1)]]
    outputs = [[point**k for k in range(m)] for point in finite] + [[Fraction(0)] * (m - 1) + [Fraction(1)]]
    for i, row in enumerate(inputs):  # whole numbers there; the kernel's map is cheap
        common = lcm(*(c.denominator for c in row))
        inputs[i], kernel[i] = [c * common for c in row], [c / common for c in kernel[i]]
    return Transform(*(tuple(tuple(map(float, row)) for row in matrix) for matrix in (outputs, kernel, inputs)))


def _product(factors: Any) -> Fraction:
    total = Fraction(1)
    for factor in factors:
        total *= factor
    return total


def _with_roots(roots: list[Fraction]) -> list[Fraction]:
    """The coefficients, lowest first, of the product of (x - root)."""
    found = [Fraction(1)]
    for root in roots:
        found = [a - root * b for a, b in zip([Fraction(0), *found], [*found, Fraction(0)], strict=True)]
    return found


@dataclass(frozen=True)
class Tiling:
    """How an axis of `side` places is cut into `count` windows, `step` apart; zeros follow the last place.

    matrix: (points, width), applied to each window.
    """

    side: int
    count: int
    step: int
    matrix: Matrix

    @property
    def points(self) -> int:
        """Numbers that each window becomes."""
        return len(self.matrix)

    @property
    def width(self) -> int:
        """Places of a window."""
        return len(self.matrix[0])

    def spread(self, x: Array, axis: int) -> Array:
        """The points of all windows: a new first axis of points, and `count` in the place of `side`."""
        if self.matrix == ((1.0,),):
            return x[None]
        last = self.step * (self.count - 1) + 1
        x = jnp.pad(x, [(0, last - 1 + self.width - self.side if i == axis else 0) for i in range(x.ndim)])
        places = [lax.slice_in_dim(x, i, i + last, self.step, axis) for i in range(self.width)]
        return _once(jnp.stack([_combined(row, places) for row in self.matrix]))

    def collect(self, y: Array, points: int, axis: int) -> Array:
        """The transpose of `spread`: what the windows have at each place, summed.

        points: the axis of y with the points; axis: that with `side` places afterwards.
        """
        if self.matrix == ((1.0,),):
            return lax.squeeze(y, (points,))
        parts = [lax.index_in_dim(y, i, points, keepdims=False) for i in range(self.points)]
        before, (_, *after) = parts[0].shape[:axis], parts[0].shape[axis:]
        blocks = self.count + (self.width - 1) // self.step
        found = jnp.zeros((*before, blocks, self.step, *after), y.dtype)
        # Windows overlap: `step` places of each window at a time, each time added in place. A sum of padded arrays
        # takes up to twice as long.
        for block, begin in enumerate(range(0, self.width, self.step)):
            columns = [[row[i] for row in self.matrix] for i in range(begin, min(begin + self.step, self.width))]
            places = jnp.stack([_combined(column, parts) for column in columns], axis + 1)
            there = (*[slice(None)] * axis, slice(block, block + self.count), slice(len(columns)))
            found = found.at[there].add(places) if block else found.at[there].set(places)
        return _once(lax.slice_in_dim(found.reshape(*before, -1, *after), 0, self.side, axis=axis))


_once = lax.optimization_barrier
"""Else XLA would compute the result along one axis again for each use along the other."""


def _combined(coefficients: Sequence[float], parts: Sequence[Array]) -> Array:
    """sum_i coefficients_i parts_i, without the zeros.

    Measured in a loop against one product with the small matrix: 2 to 8 times as fast, since nothing is copied first.
    """
    terms = [
        part if c == 1 else -part if c == -1 else part * np.asarray(c, part.dtype)
        for c, part in zip(coefficients, parts, strict=True)
        if c
    ]
    return sum(terms[1:], start=terms[0])


def _spread(x: Array, *, rows: Tiling, columns: Tiling) -> Float[Array, "points tiles channels"]:
    """(images, height, width, channels) to (points, tiles of all images, channels)."""
    found = columns.spread(rows.spread(x, 1), 3)
    return found.reshape(rows.points * columns.points, -1, x.shape[-1])


def _collect(y: Array, *, rows: Tiling, columns: Tiling) -> Float[Array, "images height width channels"]:
    """The transpose of `_spread`."""
    y = y.reshape(columns.points, rows.points, -1, rows.count, columns.count, y.shape[-1])
    # The rows first: of what is then copied, long stretches lie together.
    return columns.collect(rows.collect(y, 1, 2), 0, 2)


def _shape_of_spread(x: ShapedArray, *, rows: Tiling, columns: Tiling) -> ShapedArray:
    tiles = x.shape[0] * rows.count * columns.count
    return ShapedArray((rows.points * columns.points, tiles, x.shape[-1]), x.dtype)


def _shape_of_collect(y: ShapedArray, *, rows: Tiling, columns: Tiling) -> ShapedArray:
    images = y.shape[1] // (rows.count * columns.count)
    return ShapedArray((images, rows.side, columns.side, y.shape[-1]), y.dtype)


def _batched_spread(arguments: tuple[Array], axes: tuple[int], **tilings: Tiling) -> tuple[Array, int]:
    """A batch is more images; its axis stays next to the tiles, so that a product with one kernel moves nothing."""
    x = jnp.moveaxis(arguments[0], axes[0], 0)
    y = spread_p.bind(x.reshape(-1, *x.shape[2:]), **tilings)
    return y.reshape(y.shape[0], len(x), -1, y.shape[-1]), 1


def _batched_collect(arguments: tuple[Array], axes: tuple[int], **tilings: Tiling) -> tuple[Array, int]:
    y = jnp.moveaxis(arguments[0], axes[0], 1)
    x = collect_p.bind(y.reshape(y.shape[0], -1, y.shape[-1]), **tilings)
    return x.reshape(y.shape[1], -1, *x.shape[1:]), 0


spread_p, collect_p = Primitive("spread"), Primitive("collect")
for _primitive, _function, _shape, _rule, _transposed in (
    (spread_p, _spread, _shape_of_spread, _batched_spread, collect_p),
    (collect_p, _collect, _shape_of_collect, _batched_collect, spread_p),
):
    _primitive.def_impl(jax.jit(_function, static_argnames=("rows", "columns")))
    _primitive.def_abstract_eval(_shape)
    ad.deflinear2(_primitive, lambda dy, _, _other=_transposed, **tilings: [_other.bind(dy, **tilings)])
    batching.primitive_batchers[_primitive] = _rule
    mlir.register_lowering(_primitive, mlir.lower_fun(_function, multiple_results=False))


def over_places(
    a: Float[Array, "*groups places rows"], b: Float[Array, "*groups places columns"]
) -> Float[Array, "*groups rows columns"]:
    """y[r, c] = sum_p a[p, r] b[p, c], in each group: the gradient of a product's right side.

    XLA's product of two sides that both lie by places is slow, so the narrow one is copied transposed; the barriers
    keep XLA from turning the product round again.
    """
    if a.shape[-1] > b.shape[-1]:
        return over_places(b, a).swapaxes(-1, -2)
    turned = lax.optimization_barrier(a.swapaxes(-1, -2))
    return lax.optimization_barrier(jnp.matmul(turned, b, precision="highest"))


multiply_p = Primitive("multiply")
"""Of tiles (points, tiles, in) and kernels (points, in, out): the product at each point.

A primitive, so that the kernel's gradient is one product of all images (`over_places`).
"""


def _multiply(tiles: Array, kernels: Array) -> Float[Array, "points tiles out"]:
    return jnp.matmul(tiles, kernels, precision="highest")


def _shape_of_multiply(tiles: ShapedArray, kernels: ShapedArray) -> ShapedArray:
    return ShapedArray((*tiles.shape[:2], kernels.shape[-1]), jnp.result_type(tiles, kernels))


def _batched_multiply(arguments: tuple[Array, Array], axes: tuple[int | None, int | None]) -> tuple[Array, int]:
    """A batch of tiles with the same kernels is more tiles; with kernels each, it is so many times the points."""
    (tiles, kernels), (axis, kernel_axis) = arguments, axes
    if kernel_axis is None:
        tiles = jnp.moveaxis(tiles, axis or 0, 1)
        y = multiply_p.bind(tiles.reshape(tiles.shape[0], -1, tiles.shape[-1]), kernels)
        return y.reshape(*tiles.shape[:-1], y.shape[-1]), 1
    kernels = jnp.moveaxis(kernels, kernel_axis, 1)
    points, count = kernels.shape[:2]
    if axis is None:
        tiles = jnp.broadcast_to(tiles[:, None], (points, count, *tiles.shape[1:]))
    else:
        tiles = jnp.moveaxis(tiles, axis, 1)
    y = multiply_p.bind(tiles.reshape(-1, *tiles.shape[2:]), kernels.reshape(-1, *kernels.shape[2:]))
    return y.reshape(points, count, *y.shape[1:]), 1


multiply_p.def_impl(jax.jit(_multiply))
multiply_p.def_abstract_eval(_shape_of_multiply)
ad.defbilinear(
    multiply_p,
    lambda dy, _, kernels: multiply_p.bind(dy, kernels.swapaxes(1, 2)),
    lambda dy, tiles, _: over_places(tiles, dy),
)
batching.primitive_batchers[multiply_p] = _batched_multiply
mlir.register_lowering(multiply_p, mlir.lower_fun(_multiply, multiple_results=False))


def correlate_by_tiles(
    x: Float[Array, "n height width in"], kernel: Float[Array, "kh kw in out"], sizes: tuple[int, int]
) -> Float[Array, "n rows columns out"]:
    """y[n, r, c, o] = sum_{i, j, k} x[n, r + i, c + j, k] kernel[i, j, k, o], from tiles of m outputs.

    sizes: m of the rows and of the columns; 1 for a kernel of side 1.
    """
    *widths, channels, out = kernel.shape
    inputs, outputs, kernels = list[Tiling](), list[Tiling](), list[Tiling]()
    for side, m, r in zip(x.shape[1:3], sizes, widths, strict=True):
        made, matrices = side - r + 1, transform(m, r)
        count = -(-made // m)
        inputs.append(Tiling(side, count, m, matrices.inputs))
        outputs.append(Tiling(made, count, m, matrices.outputs))
        kernels.append(Tiling(r, 1, r, matrices.kernel))
    tiles = spread_p.bind(x, rows=inputs[0], columns=inputs[1])
    factors = spread_p.bind(kernel.reshape(1, *widths, channels * out), rows=kernels[0], columns=kernels[1])
    products = multiply_p.bind(tiles, factors.reshape(-1, channels, out))
    return collect_p.bind(products, rows=outputs[0], columns=outputs[1])


def tile_sizes(kernel_shape: tuple[int, ...], outputs: tuple[int, int]) -> tuple[int, int] | None:
    """The m of rows and columns with the fewest multiplications; None where they do not pay for the two maps.

    kernel_shape: (kh, kw, in, out). outputs: rows and columns of a convolution.
    """
    *widths, channels, out = kernel_shape
    if max(widths) > WIDEST or min(channels, out) < FEWEST_CHANNELS:
        return None
    sizes, share = list[int](), 1.0
    for r, made in zip(widths, outputs, strict=True):
        counts = {m: (m + r - 1) * -(-made // m) for m in (TILES if r > 1 else (1,))}
        sizes.append(min(counts, key=lambda m: counts[m]))
        share *= counts[sizes[-1]] / (made * r)
    return (sizes[0], sizes[1]) if share <= MOST_SHARE else None


WIDEST = 5
"""Side of a kernel, beyond which float32 would lose too many digits."""
MOST_SHARE = 0.35
"""Of the definition's multiplications. With more, tiles of layers with few channels were 0.8 to 1.3 times as fast."""
FEWEST_CHANNELS = 8
"""Below, the product between the maps is too thin."""
