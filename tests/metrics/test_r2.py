import math

import numpy as np
import pytest
from sklearn.metrics import r2_score

from idiolect.metrics.r2 import R2
from tests.metrics.scored import check, check_units, numbers, scored


def by_sklearn(guesses, labels):
    return r2_score(labels, guesses) if len(labels) > 1 else math.nan


def test_it_is_scikit_learns():
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
