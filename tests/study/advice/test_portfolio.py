import numpy as np

from idiolect.study.advice.portfolio import portfolio, preferred
from idiolect.study.advice.scored import Candidate


def test_the_shared_model_stays_within_one_standard_error_of_the_best() -> None:
    noise = np.array([1.0, -1.0, 1.0, -1.0])  # deviation 1.155, standard error 0.577
    shared = np.zeros(4)
    assert preferred(np.stack([shared - 0.57 + noise, shared]), shared=1) == 1
    assert preferred(np.stack([shared - 0.58 + noise, shared]), shared=1) == 0


def test_fewer_than_two_rows_say_nothing() -> None:
    assert preferred(np.array([[0.0], [9.0]]), shared=1) == 1
    assert preferred(np.zeros((2, 0)), shared=1) == 1


def test_each_client_has_the_model_that_its_own_rows_prefer() -> None:
    owners = np.repeat([0, 1], 3)
    alone = Candidate("local", "alone", (np.array([1.0, 1, 1, 9, 9, 9]),), (np.array([1.0, 1, 1, 9, 9, 9]),))
    shared = Candidate("fedavg", "shared", (np.full(6, 5.0),), (np.full(6, 5.0),))
    chosen, choices = portfolio([alone, shared], (owners, owners), 2)
    np.testing.assert_array_equal(choices, [[0, 1]])
    np.testing.assert_array_equal(chosen.test[0], [1, 1, 1, 5, 5, 5])
