from sklearn.metrics import root_mean_squared_error

from idiolect.metrics.rmse import RMSE
from tests.metrics.scored import check, check_units, numbers


def test_it_is_scikit_learns():
    check(RMSE(), numbers(), lambda guesses, labels: root_mean_squared_error(labels, guesses))


def test_it_is_in_the_units_of_the_label():
    check_units(RMSE(), lambda guesses, labels: root_mean_squared_error(labels, guesses))
