import math

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score, root_mean_squared_error

from idiolect.metrics.registry import METRICS
from idiolect.metrics.regression import MAE, MSE, R2, RMSE
from tests.metrics.scored import check, check_units, numbers, scored


def test_it_is_scikit_learns():
    check(MAE(), numbers(), lambda guesses, labels: mean_absolute_error(labels, guesses))


def test_it_is_in_the_units_of_the_label():
    check_units(MAE(), lambda guesses, labels: mean_absolute_error(labels, guesses))


def test_it_is_scikit_learns_mse():
    check(MSE(), numbers(), lambda guesses, labels: mean_squared_error(labels, guesses))


def test_it_is_in_the_units_of_the_label_mse():
    check_units(MSE(), lambda guesses, labels: mean_squared_error(labels, guesses))


def test_it_is_scikit_learns_rmse():
    check(RMSE(), numbers(), lambda guesses, labels: root_mean_squared_error(labels, guesses))


def test_it_is_in_the_units_of_the_label_rmse():
    check_units(RMSE(), lambda guesses, labels: root_mean_squared_error(labels, guesses))


def test_of_two_errors_the_lower_is_better():
    """It is chosen by its name, for numbers, and is shown in its own units."""
    metric = METRICS["rmse"]
    assert (metric.name, metric.column, metric.task, metric.unit) == ("rmse", "RMSE", "regression", 1)
    assert metric.best([3.0, 1.0, 2.0]) == 1


def by_sklearn(guesses, labels):
    return r2_score(labels, guesses) if len(labels) > 1 else math.nan


def test_it_is_scikit_learns_r2():
    check(R2(), numbers(), by_sklearn)


def test_labels_far_from_0_keep_their_variance():
    """A mean of 1,000 deviations: of sums of squares float32 would have nothing left."""
    labels = (3000 + 3 * np.random.default_rng(0).normal(size=500)).astype(np.float32)
    guesses = (labels + np.sin(np.arange(500))).astype(np.float32)
    values, pooled = scored(R2(), [(guesses, labels)], rows=64)
    assert values[0] == pooled == pytest.approx(r2_score(labels.astype(float), guesses.astype(float)), abs=1e-6)


def test_equal_labels_have_no_value():
    values, pooled = scored(R2(), [(np.zeros(3, np.float32), np.full(3, 7.25, np.float32))])
    assert math.isnan(values[0])
    assert math.isnan(pooled)


def test_the_units_of_the_label_do_not_matter():
    check_units(R2(), by_sklearn)
