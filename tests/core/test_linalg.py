import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import idiolect
from idiolect.core import linalg

SOURCE = Path(idiolect.__file__).parent


def unit_lower(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    return scipy.linalg.solve_triangular(matrix, right, lower=True, unit_diagonal=True)


def rebuilt(matrix: jax.Array) -> jax.Array:
    """V diag(values) V', which no sign of an eigenvector changes."""
    values, vectors = linalg.eigh(matrix)
    return jnp.concatenate([values[None], (vectors * values) @ vectors.T])


def rebuilt_by_numpy(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return np.concatenate([values[None], (vectors * values) @ vectors.T])


def symmetric(matrix: np.ndarray) -> np.ndarray:
    return matrix + np.swapaxes(matrix, -1, -2)


# A function, its reference, and the number of its arguments.
PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any], int]] = {
    "eigh": (rebuilt, rebuilt_by_numpy, 1),
    "polar": (linalg.polar, lambda matrix: scipy.linalg.polar(matrix)[0], 1),
    "solve": (linalg.solve, np.linalg.solve, 2),
    "solve_unit_lower": (linalg.solve_unit_lower, unit_lower, 2),
}


def drawn(name: str, count: int) -> list[np.ndarray]:
    """Arguments (3, 2, 5, 5) and (3, 2, 5, 4)."""
    rng = np.random.default_rng(0)
    matrix, right = rng.normal(size=(3, 2, 5, 5)) + 3 * np.eye(5), rng.normal(size=(3, 2, 5, 4))
    return [symmetric(matrix) if name == "eigh" else matrix, right][:count]


@pytest.mark.parametrize("name", PAIRS)
def test_a_matrix_and_a_batch_of_batches_equal_numpy(name: str) -> None:
    function, reference, count = PAIRS[name]
    arguments = drawn(name, count)
    with jax.enable_x64(True):
        given = [jnp.asarray(one) for one in arguments]
        wanted = np.stack([[reference(*(a[i, j] for a in arguments)) for j in range(2)] for i in range(3)])
        np.testing.assert_allclose(function(*(a[0, 0] for a in given)), wanted[0, 0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(jax.vmap(jax.vmap(function))(*given), wanted, rtol=1e-9, atol=1e-12)


def equations(jaxpr: Any) -> Iterator[Any]:
    """All equations, also those inside loops and calls."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda leaf: hasattr(leaf, "jaxpr")):
            found = getattr(inner, "jaxpr", inner)
            if hasattr(found, "eqns"):
                yield from equations(found)


@pytest.mark.parametrize("name", PAIRS)
def test_a_batch_reaches_lapack_one_matrix_at_a_time(name: str) -> None:
    """A batch would be divided among XLA's threads, which may wait for each other for ever."""
    function, _, count = PAIRS[name]
    traced = jax.make_jaxpr(jax.vmap(jax.vmap(function)))(*(jnp.asarray(a) for a in drawn(name, count)))
    lapack = {"eigh", "svd", "lu", "triangular_solve"}
    found = [equation for equation in equations(traced.jaxpr) if equation.primitive.name in lapack]
    assert found
    assert {variable.aval.ndim for equation in found for variable in equation.invars} == {2}


def test_no_other_module_calls_lapack_through_jax() -> None:
    for path in SOURCE.rglob("*.py"):
        if path != SOURCE / "core" / "linalg.py":
            text = ast.unparse(ast.parse(path.read_text()))
            assert not re.findall(r"jnp\.linalg\.(?!norm\b)\w+|jax\.scipy\.linalg|lax\.linalg", text), path
