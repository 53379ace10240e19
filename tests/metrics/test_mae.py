from sklearn.metrics import mean_absolute_error

from idiolect.metrics.mae import MAE
from tests.metrics.scored import check, numbers


def test_it_is_scikit_learns():
    check(MAE(), numbers(), lambda guesses, labels: mean_absolute_error(labels, guesses))
