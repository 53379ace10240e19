from sklearn.metrics import mean_squared_error

from idiolect.metrics.mse import MSE
from tests.metrics.scored import check, numbers


def test_it_is_scikit_learns():
    check(MSE(), numbers(), lambda guesses, labels: mean_squared_error(labels, guesses))
