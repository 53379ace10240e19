import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.linear_model import LogisticRegression

from idiolect.study.advice import problems
from idiolect.study.advice.problems import Problems, newton


def problem(classes: int, dummies: bool, rows: int = 30) -> Problems:
    """Three clients, of which one has no row; one row does not count."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(1, rows, 3)), np.ones((1, rows, 1))], axis=2)
    y = rng.integers(classes, size=(1, rows)) if classes else rng.normal(size=(1, rows))
    weights = np.ones((1, rows))
    weights[0, 3] = 0
    counts = np.bincount(y[0, weights[0] > 0], minlength=classes) if classes else np.zeros(0, np.int64)
    return Problems(x, y, weights, counts[None], np.array([10, 0, rows - 10]) if dummies else None)


@pytest.mark.parametrize("dummies", [False, True])
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_gradient_and_newton_direction_are_those_of_the_value(classes: int, dummies: bool) -> None:
    one = problem(classes, dummies)
    theta, penalty = np.random.default_rng(1).normal(size=one.start().shape), np.array([0.7])

    def value(vector: np.ndarray) -> float:
        return float(one.value(one.logits(vector[None]), vector[None], penalty)[0])

    def gradient(vector: np.ndarray) -> np.ndarray:
        return one.gradient(one.slopes(one.logits(vector[None]))[0], vector[None], penalty)[0]

    slopes, shares = one.slopes(one.logits(theta))
    found = one.gradient(slopes, theta, penalty)
    np.testing.assert_allclose(found[0], approx_fprime(theta[0], value, 1e-7), atol=1e-4)
    hessian = approx_fprime(theta[0], gradient, 1e-7)
    np.testing.assert_allclose(-hessian @ one.direction(shares, found, penalty)[0], found[0], atol=1e-4)


@pytest.mark.parametrize("dummies", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_large_systems_are_solved_by_another_method_to_the_same_optimum(
    classes: int, dummies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, penalty = problem(classes, dummies), np.array([0.3])
    exact = newton(one, one.start(), penalty, 1e-11)
    monkeypatch.setattr(problems, "_LARGEST", 1)
    np.testing.assert_allclose(newton(one, one.start(), penalty, 1e-11), exact, atol=1e-4)


def test_problems_of_a_batch_end_by_themselves() -> None:
    """Easy and separable problems in one batch have the optimum that each has by itself."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(6, 40, 2)), np.ones((6, 40, 1))], axis=2)
    y = (rng.random((6, 40)) < 0.5).astype(np.int64)
    y[0] = x[0, :, 0] > 0
    batch = Problems(x, y, np.ones((6, 40)), np.stack([np.bincount(each, minlength=2) for each in y]))
    penalty = np.full(6, 1e-4)
    theta = newton(batch, batch.start(), penalty, 1e-12)
    for i in range(6):
        model = LogisticRegression(C=1e4, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
        model.fit(x[i, :, :-1], y[i])
        np.testing.assert_allclose(theta[i], [*model.coef_[0], *model.intercept_], rtol=1e-4, atol=1e-6)


def test_a_step_that_overshoots_is_halved() -> None:
    """From far away a whole Newton step of the log-loss goes further away."""
    one = problem(2, False)
    far = one.start() + 30.0
    np.testing.assert_allclose(
        newton(one, far, np.array([0.5]), 1e-11), newton(one, one.start(), np.array([0.5]), 1e-11), atol=1e-6
    )
