import numpy as np
from scipy.stats import norm
from sklearn.metrics import log_loss

from idiolect.study.advice.scored import by_client, candidate, log_losses, mixed


def test_log_losses_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    outputs, labels = rng.normal(size=(50, 3)), rng.integers(3, size=50)
    shares = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(log_losses(outputs, labels).mean(), log_loss(labels, shares), rtol=1e-12)


def test_a_regression_has_squared_errors_and_no_hits() -> None:
    y = np.array([1.0, 2.0], np.float32)
    one = candidate("a", "alone", [(np.array([[0.0], [0.0]]), np.array([3.0, 2.0]))], [(y, y)])
    np.testing.assert_array_equal(one.validation[0], [1, 4])
    np.testing.assert_array_equal(one.test[0], [4, 0])
    assert one.right is None


def test_means_by_client_are_those_of_its_rows_and_missing_without_rows() -> None:
    means = by_client((np.array([1.0, 3.0, 5.0]),), np.array([0, 0, 2]), 3)
    np.testing.assert_array_equal(means, [[2.0, np.nan, 5.0]])


def test_a_mixture_takes_each_clients_rows_from_its_own_choice() -> None:
    y = np.array([0, 1, 0])
    right = candidate("a", "alone", [(norm.pdf(np.ones((3, 2))), np.array([[9.0, 0], [0, 9.0], [9.0, 0]]))], [(y, y)])
    wrong = candidate(
        "b", "shared", [(norm.pdf(np.ones((3, 2))), np.array([[0, 9.0], [9.0, 0], [0, 9.0]]))], [(y, y)]
    )
    owners = np.array([0, 0, 1])
    both = mixed("c", "portfolio", [np.array([0, 1])], [right, wrong], (owners, owners))
    np.testing.assert_array_equal(both.test[0], [right.test[0][0], right.test[0][1], wrong.test[0][2]])
    assert both.right is not None
    np.testing.assert_array_equal(both.right[0], [True, True, False])
