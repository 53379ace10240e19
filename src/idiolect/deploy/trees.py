"""States and messages as named vectors, and back, checked against what is expected."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from idiolect.core.errors import DataError
from idiolect.deploy.messages import Vector, Vectors


def named(tree: PyTree) -> dict[str, Vector]:
    """The tree's leaves by their places in it, as NumPy arrays. Python numbers are leaves, too."""
    return {name: np.asarray(leaf) for name, leaf in names_of(tree).items()}


def names_of(tree: PyTree) -> dict[str, Any]:
    """The tree's leaves, arrays or shapes, by their places in it."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_name(path): leaf for path, leaf in leaves}


def restored(vectors: Vectors, like: PyTree, what: str) -> Any:
    """The tree with the structure of `like` (arrays or shapes) and these leaves.

    Raises `DataError`, in one line that begins with `what`, for a vector that is missing, not expected, of another
    shape or type, or not finite.
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    expected = {_name(path): leaf for path, leaf in leaves}
    check_names(vectors, expected, what)
    for name, leaf in expected.items():
        vector, shape, kind = vectors[name], np.shape(leaf), np.dtype(jnp.result_type(leaf))
        if vector.shape != shape:
            raise DataError(f"{what}: '{name}' has shape {vector.shape}, expected is {shape}")
        if vector.dtype != kind:
            raise DataError(f"{what}: '{name}' is of type {vector.dtype}, expected is {kind}")
        if vector.dtype.kind == "f" and not bool(np.isfinite(vector).all()):
            raise DataError(f"{what}: '{name}' holds NaN or infinity")
    return structure.unflatten([jnp.asarray(vectors[_name(path)]) for path, _ in leaves])


def check_names(vectors: Vectors, expected: Any, what: str) -> None:
    """Raise `DataError` unless there is a vector for each expected name, and no other."""
    if missing := sorted({*expected} - {*vectors}):
        raise DataError(f"{what}: '{missing[0]}' is missing")
    if extra := sorted({*vectors} - {*expected}):
        raise DataError(f"{what}: '{extra[0]}' is not expected")


def _name(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/") or "value"
