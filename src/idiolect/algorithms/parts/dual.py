"""Dual coordinate ascent on one client: its linear model, its dual variables, and its quadratic subproblem.

A dual method needs the losses of a linear model's output with their convex conjugates (`DualLoss`).
"""

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from idiolect.algorithms.base import Start
from idiolect.client.client import Client
from idiolect.client.objective import Batch
from idiolect.core.errors import require
from idiolect.core.random import permuted
from idiolect.core.tree import Params, Scalar, is_off

Values = Float[Array, "*s"]
Rates = Float[Array, "..."]
_NEWTON_STEPS = 5


class DualLoss(NamedTuple):
    """A loss l(z; y), convex in the output z, entry by entry. Labels y are -1 or 1, or any number for "squared".

    value(z, y): l(z; y).
    conjugate(a, y): l*(-a; y) = sup_z -a z - l(z; y); infinite where no multiple of -a lies below l.
    ascend(a, z, y, q): the a' that minimises l*(-a'; y) + (a' - a) z + (q / 2) (a' - a)^2, the step of dual
        coordinate ascent on a sample with output z, where a change of a by 1 moves z by q >= 0.

    At the optimum a = -dl/dz, and by Fenchel and Young l(z; y) + l*(-a; y) + a z >= 0, with equality just there.
    """

    value: Callable[[Values, Values], Values]
    conjugate: Callable[[Values, Values], Values]
    ascend: Callable[[Values, Values, Values, Rates], Values]


def squared(z: Values, y: Values) -> Values:
    """(z - y)^2 / 2."""
    return 0.5 * (z - y) ** 2


def squared_conjugate(a: Values, y: Values) -> Values:
    """l*(-a) = a^2 / 2 - a y."""
    return 0.5 * a**2 - a * y


def squared_ascend(a: Values, z: Values, y: Values, q: Rates) -> Values:
    """a + (y - z - a) / (1 + q)."""
    return a + (y - z - a) / (1 + q)


def hinge(z: Values, y: Values) -> Values:
    """max(0, 1 - y z)."""
    return jnp.maximum(0, 1 - y * z)


def hinge_conjugate(a: Values, y: Values) -> Values:
    """l*(-a) = -y a for 0 <= y a <= 1."""
    return jnp.where(_inside(y * a), -y * a, jnp.inf)


def hinge_ascend(a: Values, z: Values, y: Values, q: Rates) -> Values:
    """y times (y a + (1 - y z) / q), moved into [0, 1]."""
    slack = 1 - y * z
    # A sample of zeros has q = z = 0 and slack 1: its dual variable is at its bound at once.
    step = jnp.where(q > 0, slack / jnp.where(q > 0, q, 1), slack)
    return y * jnp.clip(y * a + step, 0, 1)


def logistic(z: Values, y: Values) -> Values:
    """log(1 + exp(-y z))."""
    return jax.nn.softplus(-y * z)


def logistic_conjugate(a: Values, y: Values) -> Values:
    """l*(-a) = b log b + (1 - b) log(1 - b) with b = y a in [0, 1]."""
    b = y * a
    entropy = jax.scipy.special.xlogy(b, b) + jax.scipy.special.xlogy(1 - b, 1 - b)
    return jnp.where(_inside(b), entropy, jnp.inf)


def logistic_ascend(a: Values, z: Values, y: Values, q: Rates) -> Values:
    """y sigmoid(s), where s solves g(s) = s + y z + q (sigmoid(s) - y a) = 0.

    Newton on s, the dual variable's log-odds. g rises, and is convex below 0 and concave above: on the root's
    side of 0 each step but the first comes nearer from the same side, so nothing can escape. Started at the root
    with exp(s) in place of sigmoid(s) (Lambert's W, approximated), a handful of steps is exact to rounding.
    """
    b = y * a
    offset = y * z - q * b
    above = offset + 0.5 * q < 0  # g(0) < 0: the root is positive, and that of the mirrored problem negative
    mirrored = jnp.where(above, -offset - q, offset)
    p = jax.nn.softplus(jnp.log(q) - mirrored)
    start = -mirrored - p * (1 - jnp.log1p(p) / (2 + p))
    b = jnp.where(above, 1 - b, b)
    margin = jnp.where(above, -y * z, y * z)
    s = jnp.minimum(start, 0)
    for _ in range(_NEWTON_STEPS):
        share = jax.nn.sigmoid(s)
        s = jnp.minimum(s - (s + margin + q * (share - b)) / (1 + q * share * (1 - share)), 0)
    share = jax.nn.sigmoid(s)
    return y * jnp.where(above, 1 - share, share)


def _inside(b: Values) -> Array:
    """Whether y a is in the conjugate's domain [0, 1]."""
    return (b >= 0) & (b <= 1)


LOSSES: dict[str, DualLoss] = {
    "hinge": DualLoss(hinge, hinge_conjugate, hinge_ascend),
    "logistic": DualLoss(logistic, logistic_conjugate, logistic_ascend),
    "squared": DualLoss(squared, squared_conjugate, squared_ascend),
}


GRAM_ROWS = 32  # samples whose products with each other are computed at once

Matrix = Float[Array, "outputs features"]
Duals = Float[Array, "capacity outputs"]


def require_linear(name: str, start: Start) -> None:
    """Refuse a model that is not one weight, (outputs, features) or (features,), with or without a bias."""
    outputs, features = start.num_outputs, prod(start.feature_shape)
    leaves = sorted(jax.tree.leaves(start.params), key=lambda leaf: -leaf.ndim)
    shapes = [leaf.shape for leaf in leaves]
    scalar = outputs == 1
    weight = shapes[:1] == [(outputs, features)] or (scalar and shapes[:1] == [(features,)])
    bias = shapes[1:] in ([], [(outputs,)]) or (scalar and shapes[1:] == [()])
    require(
        weight and bias,
        f"{name} trains linear models: mlr or linear, one weight of shape ({outputs}, {features}) and a bias; "
        f"this model's parameters have the shapes {', '.join(map(str, shapes)) or 'of none'}",
    )


def matrix_of(params: Params) -> Matrix:
    """A linear model's parameters as one matrix, (outputs, features), the bias as its last column."""
    first, *rest = sorted(jax.tree.leaves(params), key=lambda leaf: -leaf.ndim)
    weight = jnp.atleast_2d(first)
    return jnp.concatenate([weight, *(leaf.reshape(-1, 1) for leaf in rest)], axis=1)


def params_of(matrix: Matrix, like: Params) -> Params:
    """The inverse of `matrix_of`, in the structure of `like`."""
    most = max(leaf.ndim for leaf in jax.tree.leaves(like))

    def part(leaf: Array) -> Array:
        values = matrix[:, : leaf.size // matrix.shape[0]] if leaf.ndim == most else matrix[:, -1]
        return values.reshape(leaf.shape).astype(leaf.dtype)

    return jax.tree.map(part, like)


class Totals(NamedTuple):
    """Sums over a client's samples: the loss l(z), the conjugate l*(-a), and a z."""

    loss: Float[Array, ""]
    conjugate: Float[Array, ""]
    product: Float[Array, ""]

    @property
    def gap(self) -> Float[Array, ""]:
        """sum l(z) + l*(-a) + a z: not negative, and 0 only at the optimum."""
        return self.loss + self.conjugate + self.product


class Subproblem(eqx.Module):
    """What one client solves in a round, the data-local quadratic subproblem: over the change d of its duals a,

        G(d) = sum_i l*(-(a_i + d_i)) + <w, X d> + (q / 2) ||X d||^2,

    X d = sum_i d_i x_i its change of the dual image. Each output is a problem of its own; all are solved at once.
    At d the client's samples have the outputs z = x'(w + q X d), as if only this client moved, and q times as far.
    """

    client: Client
    start: Matrix
    curvature: Float[Array, ""]
    loss: DualLoss = eqx.field(static=True)

    def samples(self, index: Int[Array, "b"]) -> tuple[Array, Array, Array]:
        """Features, a constant 1 with them if there is a bias, (b, features); targets (b, outputs); weights (b,)."""
        batch = self.client.take(index)
        x = batch.x.reshape(len(index), -1).astype(self.start.dtype)
        if self.start.shape[1] > x.shape[1]:
            x = jnp.concatenate([x, jnp.ones_like(x[:, :1])], axis=1)
        return x, self.targets(batch), batch.weight.astype(x.dtype)

    def targets(self, batch: Batch) -> Float[Array, "b outputs"]:
        """Regression: the target. Classification: for each output 1 if it is the sample's class, else -1."""
        outputs, dtype = self.start.shape[0], self.start.dtype
        if self.client.objective.task == "regression":
            return batch.y.reshape(-1, 1).astype(dtype)
        return 2 * jax.nn.one_hot(batch.y, outputs, dtype=dtype) - 1

    def totals(self, duals: Duals, image: Matrix) -> Totals:
        """The sums at d = the duals less those of the round's start, of which X d is `image`."""
        at, tile = self.start + self.curvature * image, self.client.tile

        def add(index: Array, sums: Totals) -> Totals:
            position = index * tile + jnp.arange(tile)
            x, y, weight = self.samples(position)
            a, z = jnp.take(duals, position, axis=0, mode="clip"), x @ at.T
            values = (self.loss.value(z, y), self.loss.conjugate(a, y), a * z)
            # where, not *: rows beyond the client's own may hold anything.
            inside = weight[:, None] > 0
            return Totals(*(s + jnp.sum(jnp.where(inside, v, 0)) for s, v in zip(sums, values, strict=True)))

        zero = jnp.zeros((), self.start.dtype)
        return jax.lax.fori_loop(0, self.client.passes(tile), add, Totals(zero, zero, zero))

    def conjugate(self, duals: Duals) -> Float[Array, ""]:
        """sum l*(-a) over the client's samples."""
        position = jnp.arange(len(duals))
        batch = self.client.take(position)
        values = self.loss.conjugate(duals, self.targets(batch))
        return jnp.sum(jnp.where(batch.weight[:, None] > 0, values, 0))

    def sweep(self, duals: Duals, image: Matrix, key: PRNGKeyArray) -> tuple[Duals, Matrix]:
        """One exact coordinate step on each sample, in random order."""

        def ascend_block(block: Array, carry: tuple[Duals, Matrix]) -> tuple[Duals, Matrix]:
            duals, image = carry
            position = block * GRAM_ROWS + jnp.arange(GRAM_ROWS)
            index = jnp.where(position < self.client.size, permuted(key, position, self.client.size), len(duals))
            x, y, weight = self.samples(index)
            old = jnp.take(duals, index, axis=0, mode="clip")
            gram, z = self.curvature * (x @ x.T), x @ (self.start + self.curvature * image).T

            def step(z: Array, row: Array) -> tuple[Array, Array]:
                new = self.loss.ascend(old[row], z[row], y[row], gram[row, row])
                new = jnp.where(weight[row] > 0, new, old[row])
                return z + gram[row][:, None] * (new - old[row]), new

            _, new = jax.lax.scan(step, z, jnp.arange(GRAM_ROWS))
            return duals.at[index].set(new, mode="drop"), image + (new - old).T @ x

        return jax.lax.fori_loop(0, self.client.passes(GRAM_ROWS), ascend_block, (duals, image))

    def solve(
        self, duals: Duals, start: Totals, key: PRNGKeyArray, passes: int, theta: Scalar
    ) -> tuple[Duals, Matrix]:
        """At most `passes` sweeps, until (G(d) - min G) / (G(0) - min G) <= theta for sure; (a + d, X d).

        G(d) - min G is at most the gap of `totals` at d, and grows with it relative to what was gained, G(0) - G(d).
        start: the totals at d = 0.
        """
        zero = jnp.zeros_like(self.start)

        def sweep(done: Array, duals: Duals, image: Matrix) -> tuple[Duals, Matrix]:
            return self.sweep(duals, image, jax.random.fold_in(key, done))

        if is_off(theta):
            return jax.lax.fori_loop(0, passes, lambda i, carry: sweep(i, *carry), (duals, zero))

        def unfinished(carry: tuple[Array, Duals, Matrix, Totals]) -> Array:
            done, _, image, now = carry
            gained = start.conjugate - now.conjugate - jnp.vdot(self.start + 0.5 * self.curvature * image, image)
            return (done < passes) & (now.gap > theta * (gained + now.gap))

        def more(carry: tuple[Array, Duals, Matrix, Totals]) -> tuple[Array, Duals, Matrix, Totals]:
            done, duals, image, _ = carry
            duals, image = sweep(done, duals, image)
            return done + 1, duals, image, self.totals(duals, image)

        return jax.lax.while_loop(unfinished, more, (jnp.asarray(0), duals, zero, start))[1:3]
