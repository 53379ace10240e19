"""Norms and inner products in blocks against NumPy on whole vectors."""

import numpy as np
import pytest

from idiolect.deploy.norms import BLOCK, inner_products, norm


@pytest.mark.parametrize("size", [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK - 5])
def test_norms_and_inner_products_are_those_of_whole_vectors(size: int) -> None:
    rng = np.random.default_rng(size)
    own = [rng.normal(size=(size, 1)).astype("f4") for _ in range(3)]
    minus = [rng.normal(size=size).astype("f4"), None, np.ones((1, size), "f4")]
    given = list(zip(own, minus, strict=True))
    whole = np.stack([v.ravel().astype("f8") - (0 if m is None else m.ravel().astype("f8")) for v, m in given])
    np.testing.assert_allclose(inner_products(given), whole @ whole.T, rtol=1e-12, atol=1e-9)
    assert norm(given) == pytest.approx(np.linalg.norm(whole), rel=1e-12)


def test_differences_are_taken_in_double_precision() -> None:
    far = np.full(8, 1e8, "f4")
    assert norm([(far, np.full(8, 1e8 - 8, "f4"))]) == pytest.approx(8 * np.sqrt(8))
    assert norm([(np.full(2, 3e38, "f4"), np.full(2, -3e38, "f4"))]) == pytest.approx(6e38 * np.sqrt(2), rel=1e-6)
