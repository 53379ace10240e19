"""Matrices factorised one at a time, also under `vmap`.

JAX (0.10.0 to 0.11.0) divides a batch of matrices among the threads of XLA, and the thread that computes waits for
them. Two programs side by side on two cores can so wait for each other for ever. A single matrix is not divided.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar, cast

import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

Given = ParamSpec("Given")
Result = TypeVar("Result")


def one_by_one(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make `vmap` of a function of arrays a loop over the batch; it has no gradient."""
    return wraps(function)(cast(Callable[Given, Result], sequential_vmap(function)))


@one_by_one
def eigh(matrix: Float[Array, "n n"]) -> tuple[Float[Array, "n"], Float[Array, "n n"]]:
    """Eigenvalues, from the least, and eigenvectors, as columns, of a symmetric matrix."""
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors


@one_by_one
def solve(matrix: Float[Array, "n n"], right: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
    """The solution x of matrix x = right."""
    return jnp.linalg.solve(matrix, right)


@one_by_one
def solve_unit_lower(matrix: Float[Array, "n n"], right: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
    """The solution x of matrix x = right; the matrix is lower triangular with ones on its diagonal."""
    return solve_triangular(matrix, right, lower=True, unit_diagonal=True)


@one_by_one
def polar(matrix: Float[Array, "m n"]) -> Float[Array, "m n"]:
    """The polar factor U V' of A = U S V': of all matrices with orthonormal rows or columns the nearest to A."""
    left, _, right = jnp.linalg.svd(matrix, full_matrices=False)
    return left @ right
