from dataclasses import replace

import numpy as np
from scipy.stats import norm
from sklearn.metrics import log_loss

from idiolect.study.advice.scored import Candidate, by_client, candidate, log_losses, mixed


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


def test_every_row_has_the_loss_of_its_own_output() -> None:
    """Softmax of (log 1, log 3) is (1/4, 3/4), of (log 2, log 8) is (1/5, 4/5)."""
    outputs = np.log(np.array([[1.0, 3.0], [2.0, 8.0], [1.0, 1.0]]))
    labels = np.array([0, 1, 0])
    np.testing.assert_allclose(log_losses(outputs, labels), -np.log([1 / 4, 4 / 5, 1 / 2]))
    one = candidate("a", "alone", [(outputs[:2], outputs)], [(labels[:2], labels)])
    np.testing.assert_allclose(one.validation[0], -np.log([1 / 4, 4 / 5]))
    np.testing.assert_allclose(one.test[0], -np.log([1 / 4, 4 / 5, 1 / 2]))
    assert one.right is not None
    np.testing.assert_array_equal(one.right[0], [False, True, True])


def test_a_squared_error_is_of_its_own_row_and_division() -> None:
    first, second = np.array([1.0, 2.0, 4.0], np.float32), np.array([0.0, 5.0], np.float32)
    one = candidate(
        "a",
        "alone",
        [(second[:, None] + [[1.0], [2.0]], first[:, None] + [[1.0], [2.0], [3.0]]), (second + 4.0, first - 1.0)],
        [(second, first), (second, first)],
    )
    assert [rows.tolist() for rows in one.test] == [[1, 4, 9], [1, 1, 1]]
    assert [rows.tolist() for rows in one.validation] == [[1, 4], [16, 16]]


def test_a_mixture_takes_each_row_at_its_own_place() -> None:
    """Row k of candidate c in division s has the loss 100 c + 10 s + k; validation rows have half a unit more."""
    rows = [[[100.0 * c + 10 * s + np.arange(n) + e for s in (0, 1)] for c in (0, 1)] for n, e in ((2, 0.5), (4, 0))]
    right = [np.array([c == 0, True, False, c == 1]) for c in (0, 1)]
    of = [Candidate(str(c), "shared", tuple(rows[0][c]), tuple(rows[1][c]), (right[c], right[c])) for c in (0, 1)]
    owners = (np.array([1, 0]), np.array([0, 1, 1, 0]))
    both = mixed("c", "portfolio", [np.array([0, 1]), np.array([1, 0])], of, owners)
    assert [each.tolist() for each in both.validation] == [[100.5, 1.5], [10.5, 111.5]]
    assert [each.tolist() for each in both.test] == [[0, 101, 102, 3], [110, 11, 12, 113]]
    assert both.right is not None
    assert [each.tolist() for each in both.right] == [[True, True, False, False], [False, True, False, True]]
    assert mixed("c", "portfolio", [np.array([0, 1])] * 2, [of[0], replace(of[1], right=None)], owners).right is None
