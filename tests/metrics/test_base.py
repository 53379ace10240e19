import math

import numpy as np
import pytest

from idiolect.metrics.accuracy import Accuracy
from idiolect.metrics.mse import MSE
from idiolect.metrics.registry import METRICS
from tests.metrics.scored import SIZES, classes, numbers, scored

HIGH, LOW = Accuracy(), MSE()
NAN = math.nan


def test_better_is_strict_and_nan_is_worst():
    assert HIGH.better(0.6, 0.5)
    assert LOW.better(0.5, 0.6)
    for metric in (HIGH, LOW):
        assert not metric.better(0.5, 0.5)
        assert metric.better(0.5, NAN)
        assert not metric.better(NAN, 0.5)
        assert not metric.better(NAN, NAN)


def test_the_best_is_the_first_of_equals():
    values = [NAN, 0.5, 0.7, 0.2, 0.7, 0.2, NAN]
    assert (HIGH.best(values), LOW.best(values)) == (2, 3)
    assert HIGH.best([NAN, NAN]) == 0


def test_worse_is_strict():
    values, reference = np.array([0.4, 0.5, 0.6, NAN]), np.array([0.5, 0.5, 0.5, 0.5])
    assert HIGH.worse(values, reference).tolist() == [True, False, False, False]
    assert LOW.worse(values, reference).tolist() == [False, False, True, False]


@pytest.mark.parametrize("name", METRICS)
def test_the_clients_values_give_that_over_all_samples_just_for_means(name):
    metric = METRICS[name]
    values, pooled = scored(metric, classes(3) if metric.task == "classification" else numbers())
    known = np.isfinite(values)
    mean = np.average(values[known], weights=np.array(SIZES)[known])
    assert np.isclose(mean, pooled, rtol=1e-5) == metric.is_mean
