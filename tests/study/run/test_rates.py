import numpy as np
import pytest

from idiolect.data.federated import FederatedData
from idiolect.study.run.rates import safe_rate
from tests.federations import federation, split_of


def small() -> FederatedData:
    rng = np.random.default_rng(0)
    parts = [(rng.normal(size=(8, 3)).astype(np.float32), rng.normal(size=8).astype(np.float32)) for _ in range(2)]
    return federation(split_of(parts))


def test_gradient_descent_with_the_safe_rate_converges_and_with_twice_it_not() -> None:
    data = small()
    rate, worst = safe_rate(data, True), 0.0
    for client in range(data.num_clients):
        x, _ = data.stored("train").client(client)
        z = np.concatenate([x, np.ones((len(x), 1))], axis=1).astype(np.float64)
        worst = max(worst, float(np.linalg.eigvalsh(z.T @ z / len(z)).max()))
    assert rate == pytest.approx(1 / worst)
    assert safe_rate(data, False) == 0.1


def test_the_safe_rate_counts_the_bias_and_the_worst_client_only() -> None:
    """z z' of a sample without features is 1; of one image of four pixels, 2 each, it is 4 * 2^2 + 1."""
    nothing = (np.zeros((3, 4), np.float32), np.zeros(3, np.float32))
    assert safe_rate(federation(split_of([nothing, nothing])), True) == 1.0
    images = [(np.full((n, 2, 2), value, np.float32), np.zeros(n, np.float32)) for n, value in ((50, 0.0), (2, 2.0))]
    assert safe_rate(federation(split_of(images)), True) == pytest.approx(1 / 17)
