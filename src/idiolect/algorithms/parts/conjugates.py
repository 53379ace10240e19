"""Losses of a linear model's output with their convex conjugates: what a dual method needs of them."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

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
    """Whether y a lies in the conjugate's domain [0, 1]."""
    return (b >= 0) & (b <= 1)


LOSSES: dict[str, DualLoss] = {
    "hinge": DualLoss(hinge, hinge_conjugate, hinge_ascend),
    "logistic": DualLoss(logistic, logistic_conjugate, logistic_ascend),
    "squared": DualLoss(squared, squared_conjugate, squared_ascend),
}
