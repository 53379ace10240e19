"""States as named vectors: what does not fit is refused in one line."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.trees import named, restored


class Pair(eqx.Module):
    left: jax.Array
    right: tuple
    word: str = eqx.field(static=True, default="kept")


TREE = {"pair": Pair(jnp.arange(3.0), (jnp.asarray(2, jnp.int32), None)), "flag": jnp.asarray(True)}


def test_there_and_back():
    vectors = named(TREE)
    assert [*vectors] == ["flag", "pair/left", "pair/right/0"]
    back = restored(vectors, jax.eval_shape(lambda: TREE), "it")
    assert jax.tree.structure(back) == jax.tree.structure(TREE)
    assert all((a == b).all() for a, b in zip(jax.tree.leaves(back), jax.tree.leaves(TREE), strict=True))
    assert named(jnp.ones(2)).keys() == {"value"}
    assert named(None) == {}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"pair/left": None}, "it: 'pair/left' is missing"),
        ({"more": np.zeros(1)}, "it: 'more' is not expected"),
        ({"pair/left": np.zeros(4, np.float32)}, r"it: 'pair/left' has shape \(4,\), expected is \(3,\)"),
        ({"pair/left": np.zeros(3, np.float64)}, "it: 'pair/left' is of type float64, expected is float32"),
        ({"pair/left": np.array([0, np.nan, 1], np.float32)}, "it: 'pair/left' holds NaN or infinity"),
        ({"pair/left": np.array([0, np.inf, 1], np.float32)}, "it: 'pair/left' holds NaN or infinity"),
    ],
)
def test_what_does_not_fit_is_refused(change, told):
    vectors = {name: vector for name, vector in {**named(TREE), **change}.items() if vector is not None}
    with pytest.raises(DataError, match=f"^{told}$"):
        restored(vectors, TREE, "it")
