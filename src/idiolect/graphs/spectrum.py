"""The extreme eigenvalues of a Laplacian: dense for small graphs, else by scipy's sparse solvers."""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from jaxtyping import Float
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from idiolect.core.errors import require

DENSE = 256  # vertices up to which a dense solver is the fastest
MOST = 5000  # the most vertices for all eigenvalues: 200 MB, half a minute
RESTARTS = 100  # of Lanczos; if it needs more, the spectral gap is so small that a factorisation is faster


def eigenvalues(laplacian: sp.csr_array) -> Float[np.ndarray, "vertices"]:
    """All eigenvalues in ascending order; raises `ConfigError` for more than `MOST` vertices."""
    size = vertices(laplacian)
    need = f"{size**2 * 8 / 1e9:.1f} GB"
    require(size <= MOST, f"graph: all eigenvalues of {size} vertices need {need}; use lambda_2 and largest")
    values = scipy.linalg.eigvalsh(laplacian.toarray())
    return np.maximum(values, 0)  # exact arithmetic gives no negative ones


def largest(laplacian: sp.csr_array) -> float:
    """rho = ||L||."""
    if vertices(laplacian) <= DENSE:
        return float(eigenvalues(laplacian)[-1])
    try:
        return _top(laplacian, laplacian)
    except ArpackNoConvergence:
        bound = 2 * float(laplacian.diagonal().max())  # Gershgorin's: no eigenvalue lies above it
        return float(_near(laplacian, bound * (1 + 1e-6), 1).max())


def second(laplacian: sp.csr_array) -> float:
    """lambda_2 of a connected graph; rho - lambda_2 is the top eigenvalue of rho I - L off the constant vector."""
    size = vertices(laplacian)
    if size <= DENSE:
        return float(eigenvalues(laplacian)[1]) if size > 1 else 0.0
    rho = largest(laplacian)

    def product(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        x = np.asarray(x).ravel()
        return rho * (x - x.mean()) - laplacian @ x

    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)  # pyright: ignore[reportCallIssue]
    try:
        return max(rho - _top(operator, laplacian), 0.0)
    except ArpackNoConvergence:
        return max(float(_near(laplacian, -1e-6 * rho, 2).max()), 0.0)  # not at 0, where L is singular


def _top(operator: Any, laplacian: sp.csr_array) -> float:
    """The largest eigenvalue by Lanczos: fast for well-connected graphs; may not converge for long thin ones."""
    start = _start(laplacian)
    return float(eigsh(operator, k=1, which="LA", v0=start, maxiter=RESTARTS, return_eigenvectors=False)[0])


def _near(laplacian: sp.csr_array, shift: float, count: int) -> Float[np.ndarray, "count"]:
    """The `count` eigenvalues nearest to `shift`, by a factorisation, which stays sparse for long thin graphs."""
    start = _start(laplacian)
    values = eigsh(laplacian.tocsc(), k=count, sigma=shift, v0=start, return_eigenvectors=False)
    return np.asarray(values)


def vertices(laplacian: sp.csr_array) -> int:
    """How many vertices the graph has."""
    return len(laplacian.indptr) - 1


def _start(laplacian: sp.csr_array) -> Float[np.ndarray, "vertices"]:
    """A fixed starting vector: ARPACK's default is not seeded."""
    return np.random.default_rng(0).normal(size=vertices(laplacian))
