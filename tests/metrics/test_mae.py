from sklearn.metrics import mean_absolute_error

from idiolect.metrics.mae import MAE
from tests.metrics.scored import check, check_units, numbers


def test_it_is_scikit_learns():
    check(MAE(), numbers(), lambda guesses, labels: mean_absolute_error(labels, guesses))


def test_it_is_in_the_units_of_the_label():
    check_units(MAE(), lambda guesses, labels: mean_absolute_error(labels, guesses))
