from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import log_loss

from idiolect.study.advice.scored import (
    BY_SIZE,
    FEWEST_ROWS,
    Candidate,
    by_client,
    by_size,
    candidate,
    log_losses,
    mixed,
    portfolio,
    preferred,
)


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


def test_a_client_leaves_the_default_only_for_a_gain_beyond_what_the_largest_of_all_reaches_by_chance() -> None:
    """The gains' standard error is sqrt(1.2 / 6) = 0.447; sqrt(2 ln 2) = 1.177, sqrt(2 ln 3) = 1.482."""
    noise = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    default = np.zeros(6)
    for models, limit in ((2, 0.5266), (3, 0.6629)):
        others = [default + 9] * (models - 2)
        assert preferred(np.stack([default - limit + 0.001 + noise, default, *others]), default=1) == 1
        assert preferred(np.stack([default - limit - 0.001 + noise, default, *others]), default=1) == 0


def test_the_default_is_whichever_model_is_named() -> None:
    losses = np.stack([np.full(6, loss) for loss in (3.0, 1.0, 2.0)])
    assert [preferred(losses, default) for default in range(3)] == [1, 1, 1]
    noise = np.array([[1.0, -1, 1, -1, 1, -1], [1, 1, -1, -1, 0, 0], [0, 0, 1, 1, -1, -1]])
    noisy = losses / 100 + noise
    assert [preferred(noisy, default) for default in range(3)] == [0, 1, 2]


def test_a_few_rows_or_one_model_say_nothing() -> None:
    losses = np.stack([np.zeros(FEWEST_ROWS), np.full(FEWEST_ROWS, 9.0)])
    assert preferred(losses, default=1) == 0
    assert preferred(losses[:, 1:], default=1) == 1
    assert preferred(np.zeros((2, 0)), default=1) == 1
    assert preferred(np.zeros((1, 30)), default=0) == 0


def of_rows(name: str, kind: str, losses: list[float], sizes: list[int]) -> Candidate:
    """A candidate with one loss for all rows of a client, in one division."""
    rows = (np.repeat(losses, sizes),)
    return Candidate(name, kind, rows, rows)


def test_each_client_has_the_model_that_its_own_rows_prefer() -> None:
    sizes = [5, 6]
    owners = np.repeat([0, 1], sizes)
    alone, shared = of_rows("local", "alone", [1.0, 9.0], sizes), of_rows("fedavg", "shared", [5.0, 5.0], sizes)
    chosen, choices = portfolio([alone, shared], (owners, owners), 2)
    np.testing.assert_array_equal(choices, [[0, 1]])
    np.testing.assert_array_equal(chosen.test[0], [1.0] * 5 + [5.0] * 6)


@pytest.mark.parametrize(("own", "default"), [(4.0, 0), (6.0, 1)])
def test_the_default_of_a_portfolio_is_that_with_the_least_validation_loss_of_all_rows(own, default) -> None:
    """The second client has four rows, too few to choose: it has what the default is. The first one chooses 0."""
    sizes = [5, FEWEST_ROWS - 1]
    owners = np.repeat([0, 1], sizes)
    alone, shared = of_rows("local", "alone", [1.0, own], sizes), of_rows("fedavg", "shared", [2.0, 5.0], sizes)
    _, choices = portfolio([alone, shared], (owners, owners), 2)
    np.testing.assert_array_equal(choices, [[0, default]])


def test_by_size_federates_the_clients_below_the_limit_that_validation_rows_choose() -> None:
    """Sums of gains over clients of 5, 2, 9, 2 rows, by size: 2 + 2 rows gain 2, with 5 rows 2 - 1.5, with 9 less."""
    sizes = [5, 2, 9, 2]
    owners = np.repeat(np.arange(4), sizes)
    local = of_rows("local", "alone", [1.0] * 4, sizes)
    shared = of_rows("fedavg", "shared", [1.3, 0.4, 1.5, 0.6], sizes)
    other = of_rows("ditto", "personal", [1.3, 0.5, 1.5, 0.7], sizes)
    found = by_size([other, local, shared], (owners, owners), 4)
    assert (found.name, found.kind) == (BY_SIZE, "policy")
    np.testing.assert_array_equal(found.test[0], np.repeat([1.0, 0.4, 1.0, 0.6], sizes))


def test_clients_of_one_size_are_on_the_same_side_of_the_limit() -> None:
    """The first gains 1 row by row and the second, of the same size, loses 0.4: together they gain."""
    sizes = [3, 3, 4]
    owners = np.repeat(np.arange(3), sizes)
    local = of_rows("local", "alone", [2.0] * 3, sizes)
    for second, expected in ((2.4, [1.0, 2.4, 2.0]), (3.1, [2.0, 2.0, 2.0])):
        shared = of_rows("fedavg", "shared", [1.0, second, 9.0], sizes)
        found = by_size([local, shared], (owners, owners), 3)
        np.testing.assert_array_equal(found.test[0], np.repeat(expected, sizes))


def test_by_size_chooses_anew_in_each_division_and_may_take_all_or_none() -> None:
    owners = np.array([0, 1, 1])
    local = Candidate("local", "alone", (np.ones(3), np.ones(3), np.ones(3)), (np.ones(3),) * 3)
    validation = (np.array([0.0, 1, 2]), np.zeros(3), np.full(3, 2.0))
    shared = Candidate("fedavg", "shared", validation, (np.full(3, 7.0),) * 3)
    found = by_size([local, shared], (owners, owners), 2)
    np.testing.assert_array_equal(np.stack(found.test), [[7, 1, 1], [7, 7, 7], [1, 1, 1]])
