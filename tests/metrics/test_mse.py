from sklearn.metrics import mean_squared_error

from idiolect.metrics.mse import MSE
from tests.metrics.scored import check, check_units, numbers


def test_it_is_scikit_learns():
    check(MSE(), numbers(), lambda guesses, labels: mean_squared_error(labels, guesses))


def test_it_is_in_the_units_of_the_label():
    check_units(MSE(), lambda guesses, labels: mean_squared_error(labels, guesses))
