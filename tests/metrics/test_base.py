import math

import numpy as np

from idiolect.metrics.accuracy import Accuracy
from idiolect.metrics.mse import MSE

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
