import numpy as np
import pytest

from idiolect.study.advice.boosting import grows, own_trees, pooled_trees
from idiolect.study.advice.regressions import Rows, own_regressions, pooled_regression

pytest.importorskip("lightgbm")


def exclusive_or(sizes: list[int], seed: int, classes: int = 2) -> Rows:
    """The label is whether the signs of two features differ, which no linear model finds."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(sum(sizes), 3)).astype(np.float32)
    differ = (x[:, 0] > 0) != (x[:, 1] > 0)
    y = differ.astype(np.int64) + (classes > 2) * (x[:, 2] > 1) if classes else differ.astype(np.float32)
    return Rows(x, y, np.concatenate([[0], np.cumsum(sizes)]))


def loss(outputs: np.ndarray, y: np.ndarray) -> float:
    if outputs.ndim == 1:
        return float(((outputs - y) ** 2).mean())
    return float(-outputs[np.arange(len(y)), y].mean())


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_trees_find_an_interaction_that_regressions_do_not(classes: int) -> None:
    sizes = [150, 200, 30]
    train, validation, test = (exclusive_or(sizes, seed, classes) for seed in range(3))
    for trees, regression in ((own_trees, own_regressions), (pooled_trees, pooled_regression)):
        found = trees(train, validation, classes)(test.x, test.offsets)
        assert found.shape == ((380, classes) if classes else (380,))
        assert np.isfinite(found).all()
        linear = regression(train, validation, classes).outputs(test.x, test.offsets)
        assert loss(found, test.y) < 0.8 * loss(linear, test.y)


def test_the_same_rows_give_the_same_trees() -> None:
    train, validation, test = (exclusive_or([150, 200, 30], seed) for seed in range(3))
    for trees in (own_trees, pooled_trees):
        first, second = (trees(train, validation, 2)(test.x, test.offsets) for _ in range(2))
        np.testing.assert_array_equal(first, second)


def test_pooled_trees_split_by_client() -> None:
    """Each client's labels are its own, whatever the features are."""
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 401, 100)
    x, y = rng.normal(size=(400, 2)).astype(np.float32), np.repeat([0, 1, 0, 1], 100)
    rows = Rows(x, y, offsets)
    assert (pooled_trees(rows, rows, 2)(x, offsets).argmax(axis=1) == y).all()


def test_a_client_with_too_few_rows_keeps_its_own_regression() -> None:
    train, validation, test = (exclusive_or([150, 30, 120], seed) for seed in range(3))
    train.y[180:] = 1  # no second class
    np.testing.assert_array_equal(grows(train, validation, 2), [True, False, False])
    found = own_trees(train, validation, 2)(test.x, test.offsets)
    linear = own_regressions(train, validation, 2).outputs(test.x, test.offsets)
    np.testing.assert_allclose(found[150:], linear[150:], atol=1e-9)
    assert not np.allclose(found[:150], linear[:150])
