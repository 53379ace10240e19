"""Newton's method on sums: clients send loss, gradient and curvature, the server solves for the step.

For a convex model with few parameters P this reaches the optimum in a handful of rounds, whatever the features'
scales are. A message has P^2 + P + 1 numbers.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from idiolect.client.objective import Batch, Objective
from idiolect.core.linalg import eigh
from idiolect.core.tree import Params

MOST = 2000
"""Parameters of the largest model: its curvature matrix has 4 million numbers."""
_FLAT = 1e-6  # of the largest curvature: directions below are numerically flat
RISE = 1e-6
"""What rounding may raise a loss by, as a share of it."""


class Sums(NamedTuple):
    """A client's sums over its training samples at the trial point: what it sends.

    loss: (); gradient: (P,); curvature: (P, P).
    """

    loss: Float[Array, "*clients"]
    gradient: Float[Array, "*clients p"]
    curvature: Float[Array, "*clients p p"]


class Newton(eqx.Module):
    """The server's state: a damped Newton iteration whose next point the clients are to evaluate.

    best: the point x with the least loss so far; loss: there, per sample. step: t; direction: d, (P,). The clients
    evaluate x + t d.
    """

    best: Params
    loss: Float[Array, ""]
    step: Float[Array, ""]
    direction: Float[Array, "p"]

    @staticmethod
    def start(params: Params) -> "Newton":
        """Begin at `params`, which the first round evaluates."""
        vector, _ = ravel_pytree(params)
        number = jnp.asarray(jnp.inf, vector.dtype)
        return Newton(params, number, jnp.ones_like(number), jnp.zeros_like(vector))

    @property
    def trial(self) -> Params:
        """x + t d, the point that clients evaluate."""
        vector, restore = ravel_pytree(self.best)
        return restore(vector + self.step * self.direction)

    def advance(self, mean: Sums, rise: float = RISE) -> "Newton":
        """Accept the trial point if its loss is not higher, and take its Newton step; else halve the step.

        mean: sums at the trial point divided by the samples. d = -H^+ g, see `inverse`.
        rise: the share by which the loss may rise.
        """
        direction = -inverse(mean.curvature) @ mean.gradient
        finite = jnp.isfinite(mean.loss) & jnp.isfinite(direction).all()
        accept = finite & ((mean.loss <= self.loss + rise * jnp.abs(self.loss)) | jnp.isinf(self.loss))
        before, restore = ravel_pytree(self.best)
        point = jnp.where(accept, before + self.step * self.direction, before)
        return Newton(
            restore(point),
            jnp.where(accept, mean.loss, self.loss),
            jnp.where(accept, 1, self.step / 2).astype(self.step.dtype),
            jnp.where(accept, direction, self.direction),
        )


def inverse(curvature: Float[Array, "p p"]) -> Float[Array, "p p"]:
    """Return the pseudo-inverse over the directions whose curvature is more than 1e-6 of the largest.

    Each parameter is first scaled to curvature 1, so that the units of the features do not matter. The other
    directions are flat to rounding; a step does not move along them. A matrix that is not finite counts as
    zero, since LAPACK may never end on it.
    """
    symmetric = 0.5 * (curvature + curvature.T)
    symmetric = jnp.where(jnp.isfinite(symmetric).all(), symmetric, 0)
    diagonal = jnp.diagonal(symmetric)
    scale = jnp.where(diagonal > 0, 1 / jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1)), 0)
    values, vectors = eigh(symmetric * scale[:, None] * scale)
    kept = values > _FLAT * jnp.maximum(values[-1], 0)
    return scale[:, None] * ((vectors * jnp.where(kept, 1 / jnp.where(kept, values, 1), 0)) @ vectors.T) * scale


def of_layer(objective: Objective, outputs: Float[Array, "b outputs"], batch: Batch) -> Float[Array, "q q"]:
    """The curvature of a batch's summed loss in W, b and an own intercept c, of outputs o = W x + b + c.

        H = sum_j A_j (x) (x_j, 1, 1)(x_j, 1, 1)^T,   A_j = d^2 loss(o_j, y_j) / d o^2

    Rows and columns stand as W (row after row), b, c do: q = outputs * (features + 2). It is exact, since o is
    linear in them, and takes a product of the features for each pair of outputs in the place of one for each
    parameter. A number added to all logits of a row changes no probability, so A_j's rows sum to 0 for classes: the
    blocks of the last class follow from the others, and two classes take one product.
    """
    count = outputs.shape[1]
    others = count - 1 if objective.task == "classification" and count > 1 else count

    def loss(o: Float[Array, "outputs"], y: Array, weight: Array) -> Float[Array, ""]:
        one = Batch(None, y[None], weight[None], batch.outputs)
        return objective.output_loss((o if objective.task == "classification" else o[0])[None], one)

    each = jax.vmap(jax.hessian(loss))(outputs, batch.y, batch.weight)  # A_j
    x = batch.x.reshape(len(batch.y), -1)
    x = jnp.concatenate([x, jnp.ones_like(x[:, :1])], axis=1)
    first, second = np.triu_indices(others)
    width = x.shape[1]
    # Rows of weight 0 may hold anything, and 0 * inf is NaN.
    held = jnp.where(batch.weight[:, None] > 0, x, 0)
    weighted = (each[:, first, second][:, :, None] * held[:, None, :]).reshape(len(held), -1)
    products = (weighted.T @ held).reshape(len(first), width, width)
    pair = np.zeros((others, others), int)
    pair[first, second] = pair[second, first] = np.arange(len(first))
    blocks = products[pair]
    if others < count:
        last = -jnp.sum(blocks, axis=1, keepdims=True)
        blocks = jnp.concatenate([blocks, last], axis=1)
        column = jnp.swapaxes(last, 0, 1)
        blocks = jnp.concatenate([blocks, jnp.concatenate([column, -jnp.sum(column, axis=1, keepdims=True)], axis=1)])
    # Where W, b and c lie among the outputs' (features, 1).
    of_output, of_feature = np.divmod(np.arange(count * width), width)
    inside = of_feature < width - 1
    order = np.concatenate([np.flatnonzero(inside), *[np.flatnonzero(~inside)] * 2])
    a, i = of_output[order], of_feature[order]
    return blocks[a[:, None], a, i[:, None], i]
