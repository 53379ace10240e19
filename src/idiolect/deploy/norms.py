"""Norms and inner products of large messages in double precision, in blocks that stay in the processor's cache.

A copy of a whole message in double precision costs more time than the arithmetic: the system must supply its memory.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from idiolect.deploy.messages import Vector

BLOCK = 1 << 15
"""Numbers of a block; 256 KB in double precision."""


def norm(vectors: Iterable[tuple[Vector, Vector | None]]) -> float:
    """The Euclidean norm of all these vectors together. Each is given with one to subtract from it, or None."""
    total = 0.0
    for vector, minus in vectors:
        for part in _blocks(vector, minus):
            total += float(np.einsum("i,i->", part, part))  # the same bits on any number of cores, unlike BLAS
    return float(np.sqrt(total))


def inner_products(vectors: Sequence[tuple[Vector, Vector | None]]) -> np.ndarray:
    """The inner products of vectors of one size, a symmetric matrix. Each is given as in `norm`."""
    products = np.zeros((len(vectors), len(vectors)))
    for parts in zip(*(_blocks(vector, minus) for vector, minus in vectors), strict=True):
        rows = np.stack(parts)
        products += rows @ rows.T
    return products


def _blocks(vector: Vector, minus: Vector | None) -> Iterator[np.ndarray]:
    flat, less = vector.reshape(-1), None if minus is None else minus.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        part = flat[start : start + BLOCK].astype(np.float64)
        if less is not None:
            part -= less[start : start + BLOCK]
        yield part
