"""Mapping in blocks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.runtime.blocks import default_block, map_blocks

X, Y = jnp.arange(24.0).reshape(12, 2), jnp.arange(12)


def one(x, y):
    return {"sum": x.sum() * y, "rows": x + y}


def loops(block, rows):
    """The length of every loop that the map compiles to."""
    traced = jax.make_jaxpr(lambda *arguments: map_blocks(one, block, *arguments))(X[:rows], Y[:rows])
    return [equation.params["length"] for equation in traced.eqns if equation.primitive.name == "scan"]


@pytest.mark.parametrize("rows", [1, 7, 12])
@pytest.mark.parametrize("block", [0, 1, 2, 5, 7, 12, 100])
def test_the_result_is_the_same_in_blocks_of_any_size(block, rows):
    mapped = map_blocks(one, block, X[:rows], Y[:rows])
    np.testing.assert_array_equal(mapped["sum"], X[:rows].sum(axis=1) * Y[:rows])
    np.testing.assert_array_equal(mapped["rows"], X[:rows] + Y[:rows, None])


@pytest.mark.parametrize(
    ("block", "rows", "expected"),
    [
        (0, 12, []),
        (12, 12, []),
        (13, 12, []),
        (1, 1, []),
        (1, 12, [12]),
        (4, 12, [3]),
        (6, 12, [2]),
        (5, 12, [3]),  # 4 divides 12, and is more than half of 5
        (7, 12, [2]),
        (8, 12, [2]),
        (3, 7, [2]),  # neither 3 nor 2 divides 7: two blocks, and the remainder
        (2, 7, [3]),
    ],
)
def test_how_many_blocks_there_are_one_after_the_other(block, rows, expected):
    assert loops(block, rows) == expected


def test_block_0_runs_the_rows_one_by_one_unbatched():
    shapes, values = [], []

    def seen(x, y):
        shapes.append(x.shape)
        values.append(float(y))
        return x.sum()

    map_blocks(seen, 0, X[:3], Y[:3])
    assert shapes == [(2,)] * 3
    assert values == [0, 1, 2]


@pytest.mark.parametrize(("sizes", "block"), [((5_000,), 8), ((2_000, 3_000), 8), ((2_000, 3_001), 1), ((9_000,), 1)])
def test_small_models_are_mapped_together(sizes, block):
    assert default_block({str(k): jnp.zeros(size) for k, size in enumerate(sizes)}) == block
