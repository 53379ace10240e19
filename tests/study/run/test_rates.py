import numpy as np
import pytest

from idiolect.data.federated import FederatedData
from idiolect.study.run.rates import _top, curvature, rates_of, safe_rate
from idiolect.study.spec.assemble import problem_of
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


def test_the_curvature_of_a_linear_model_counts_the_noise_of_mini_batches() -> None:
    """Two rows, x = 1 and x = -1: the mean z z' is the identity and |z|^2 is 2."""
    rows = (np.array([[1.0], [-1.0]], np.float32), np.zeros(2, np.float32))
    problem = problem_of(federation(split_of([rows])), "linear")
    assert curvature(problem, 0) == pytest.approx(1.0)
    assert curvature(problem, 1) == pytest.approx(3.0)
    weighted = problem_of(federation(split_of([rows])), {"name": "linear", "l2": 0.5})
    assert curvature(weighted, 0) == pytest.approx(1.5)


def test_power_iterations_find_the_largest_eigenvalue_of_the_hessian() -> None:
    """Half the squared error of a linear map has the Hessian mean z z', whatever its parameters are."""
    rng = np.random.default_rng(0)
    x = (3 * rng.normal(size=(32, 3))).astype(np.float32)
    problem = problem_of(federation(split_of([(x, np.zeros(32, np.float32))])), "linear")
    z = np.concatenate([x, np.ones((32, 1))], axis=1)
    assert _top(problem, x, np.zeros(32, np.float32)) == pytest.approx(np.linalg.norm(z, 2) ** 2 / 32, rel=0.05)


def test_rates_of_methods_with_several() -> None:
    assert rates_of({"name": "fedavg-ft"}, 4.0) == {"rate": 0.25}
    assert rates_of({"name": "ditto", "prox_weight": 1.0}, 4.0) == {"rate": 0.25, "personal_rate": 0.2}
    assert rates_of({"name": "pfedme", "prox_weight": 16.0}, 4.0) == {"rate": 0.0625, "inner_rate": 0.05}
    assert rates_of({"name": "perfedavg", "rate": 0.5}, 4.0) == {"adapt_rate": 0.25}
    assert rates_of({"name": "mocha"}, 4.0) == {}
