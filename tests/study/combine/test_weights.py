"""Weights of a combination."""

import numpy as np
import pytest

from idiolect.study.advice.blend import likelihoods, weights
from idiolect.study.combine.weights import weights_of


def test_a_portfolio_gives_clients_without_rows_the_default() -> None:
    """Method 1 is better everywhere; client 1 has no validation row, and new clients have none either."""
    losses = np.stack([np.full(12, loss) + 0.01 * np.arange(12) for loss in (2.0, 1.0)])
    found, others = weights_of("portfolio", losses, np.repeat([0, 2], 6), 3, True)
    assert found.tolist() == [[0, 1]] * 3
    assert others.tolist() == [0, 1]


@pytest.mark.parametrize("classes", [True, False])
def test_a_blend_is_that_of_the_advice_and_new_clients_have_its_mean(classes: bool) -> None:
    losses, owners = np.random.default_rng(0).uniform(0.1, 2, size=(3, 20)), np.repeat([0, 1], 10)
    found, others = weights_of("blend", losses, owners, 2, classes)
    np.testing.assert_array_equal(found, weights(likelihoods(losses, classes), owners, 2))
    np.testing.assert_allclose(others, found.mean(axis=0))
    assert np.abs(found - weights_of("blend", losses, owners, 2, not classes)[0]).max() > 1e-3
