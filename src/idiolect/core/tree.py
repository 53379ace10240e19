"""Arithmetic on parameter trees as vectors."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, PyTree

Params = PyTree[Float[Array, "..."]]
Scalar = Array | np.floating | float  # a hyper-parameter: a number, or a traced value


def is_parameter(leaf: Any) -> bool:
    """Whether a leaf is an inexact array, or the shape of one."""
    is_shape = isinstance(leaf, jax.ShapeDtypeStruct) and jnp.issubdtype(leaf.dtype, jnp.inexact)
    return is_shape or eqx.is_inexact_array(leaf)


def bytes_of(x: PyTree) -> int:
    """Return the bytes of all leaves, which are arrays or their shapes."""
    return sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(x))


def is_off(setting: Scalar) -> bool:
    """Whether a hyper-parameter is a Python 0, so that its term can be left out of the compiled program."""
    return isinstance(setting, float | int) and setting == 0


def add_scaled(x: Params, scale: ArrayLike, y: Params) -> Params:
    """Return x + scale * y, in the dtype of x."""
    return jax.tree.map(lambda a, b: (a + jnp.asarray(scale, a.dtype) * b).astype(a.dtype), x, y)


def subtract(x: Params, y: Params) -> Params:
    """Return x - y."""
    return jax.tree.map(jnp.subtract, x, y)


def lerp(x: Params, y: Params, weight: ArrayLike) -> Params:
    """Return (1 - weight) x + weight y; weights outside [0, 1] extrapolate (pFedMe's beta > 1)."""
    return jax.tree.map(lambda a, b: (1 - jnp.asarray(weight, a.dtype)) * a + jnp.asarray(weight, a.dtype) * b, x, y)


def merged(part: PyTree, rest: PyTree | None) -> PyTree:
    """Combine two partial trees, each with None in the place of the other's leaves; rest: None if `part` is whole."""
    return part if rest is None else eqx.combine(part, rest)


def dot(x: Params, y: Params) -> Float[Array, ""]:
    """Return <x, y> over all leaves."""
    pairs = zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True)
    return jnp.asarray(sum((jnp.vdot(a, b) for a, b in pairs), start=0.0))


def squared_norm(x: Params) -> Float[Array, ""]:
    """Return ||x||^2 over all leaves."""
    return dot(x, x)


def weighted_mean(stack: Params, weights: Float[Array, "clients"]) -> Params:
    """Return sum_i weights_i x_i / sum_i weights_i over the leading axis; see `weighted_sum`."""
    return weighted_sum(stack, weights / jnp.sum(weights))


def weighted_sum(stack: Params, weights: Float[Array, "clients"]) -> Params:
    """Return sum_i weights_i x_i over the leading axis.

    stack: leaves (clients, ...). Rows of weight 0 are masked, so NaN or infinity in them does not spread.
    """

    def summed(leaf: Array) -> Array:
        shape = (-1,) + (1,) * (leaf.ndim - 1)
        kept = jnp.where((weights > 0).reshape(shape), leaf, 0)
        # As a product: XLA's sum over a leading axis is many times slower on a CPU.
        return jnp.tensordot(weights.astype(leaf.dtype), kept, axes=1, precision="highest")

    return jax.tree.map(summed, stack)


def all_finite(x: PyTree) -> Bool[Array, ""]:
    """Return whether every floating-point entry is finite."""
    flags = [
        jnp.all(jnp.isfinite(leaf))
        for leaf in jax.tree.leaves(x)
        if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)
    ]
    return jnp.stack(flags).all() if flags else jnp.asarray(True)


def copied(values: PyTree) -> PyTree:
    """Copy every array, to a buffer of its own on the same devices; other leaves are kept."""

    def one(leaf: Any) -> Any:
        return jax.device_put(leaf, may_alias=False) if eqx.is_array(leaf) else leaf  # `jnp.array` would compile

    return jax.tree.map(one, values)


def gather(stack: PyTree, index: ArrayLike) -> PyTree:
    """Return row(s) `index` of every leaf."""
    return jax.tree.map(lambda leaf: leaf[index], stack)


def is_key(leaf: Any) -> bool:
    """Whether a leaf is a random key, or an array of them; NumPy has no such type."""
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def gather_on_host(stack: PyTree, index: ArrayLike) -> PyTree:
    """As `gather`, copied to NumPy, and random keys to the default device.

    An operation on arrays that several devices divide may exchange parts between them; one on the copies never does.
    """

    def one(leaf: Any) -> Any:
        if is_key(leaf):
            return jax.random.wrap_key_data(jnp.asarray(np.asarray(jax.random.key_data(leaf))[np.asarray(index)]))
        return np.asarray(leaf)[np.asarray(index)]

    return jax.tree.map(one, stack)
