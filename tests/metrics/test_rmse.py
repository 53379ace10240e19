from sklearn.metrics import root_mean_squared_error

from idiolect.metrics.registry import METRICS
from idiolect.metrics.rmse import RMSE
from tests.metrics.scored import check, check_units, numbers


def test_it_is_scikit_learns():
    check(RMSE(), numbers(), lambda guesses, labels: root_mean_squared_error(labels, guesses))


def test_it_is_in_the_units_of_the_label():
    check_units(RMSE(), lambda guesses, labels: root_mean_squared_error(labels, guesses))


def test_of_two_errors_the_lower_is_better():
    """It is chosen by its name, for numbers, and is shown in its own units."""
    metric = METRICS["rmse"]
    assert (metric.name, metric.column, metric.task, metric.unit) == ("rmse", "RMSE", "regression", 1)
    assert metric.best([3.0, 1.0, 2.0]) == 1
