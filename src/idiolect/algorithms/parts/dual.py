"""Dual coordinate ascent on one client: its linear model, its dual variables, and its quadratic subproblem."""

from math import prod
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from idiolect.algorithms.parts.conjugates import DualLoss
from idiolect.algorithms.start import Start
from idiolect.client.client import Client
from idiolect.client.objective import Batch
from idiolect.core.errors import require
from idiolect.core.random import permuted
from idiolect.core.tree import Params, Scalar, is_off

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
