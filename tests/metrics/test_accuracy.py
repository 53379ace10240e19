import warnings

import jax
import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score

from idiolect.metrics.accuracy import Accuracy, BalancedAccuracy, MacroF1
from tests.metrics.scored import check, classes, scored


@pytest.mark.parametrize("count", [2, 5])
def test_it_is_scikit_learns(count):
    check(Accuracy(), classes(count), lambda z, y: accuracy_score(y, z.argmax(axis=1)))


def by_sklearn(logits, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class that is predicted and not there
        return balanced_accuracy_score(labels, logits.argmax(axis=1))


@pytest.mark.parametrize("count", [2, 5])
def test_it_is_scikit_learns_balanced_accuracy(count):
    check(BalancedAccuracy(), classes(count), by_sklearn)


@pytest.mark.parametrize("count", [2, 5])
def test_it_is_scikit_learns_macro_f1(count):
    """Of classes that are predicted or there: scikit-learn's choice of labels, too."""
    check(MacroF1(), classes(count), lambda z, y: f1_score(y, z.argmax(axis=1), average="macro"))


def test_by_hand():
    # Class 0: 2 right of 3 predicted and 2 there, 4/5. Class 1: 1 of 1 and 2, 2/3. Class 2: predicted in vain, 0.
    # Class 3 is there and never predicted, 0. Class 4 is neither: it does not count.
    predicted, actual = np.array([0, 0, 0, 1, 2]), np.array([0, 0, 1, 1, 3], np.int32)
    values, pooled = scored(MacroF1(), [(np.eye(5, dtype=np.float32)[predicted], actual)], rows=2)
    assert values[0] == pooled == pytest.approx((4 / 5 + 2 / 3 + 0 + 0) / 4)


@pytest.mark.parametrize("x64", [False, True])
def test_it_is_finished_in_double_precision(x64):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 7, 30_000).astype(np.int32)
    logits = rng.integers(-2, 3, (30_000, 7)).astype(np.float32)  # whole numbers: the first of equals is predicted
    with jax.enable_x64(x64):
        values, pooled = scored(MacroF1(), [(logits, labels)], rows=256)
    expected = f1_score(labels, logits.argmax(axis=1), average="macro")
    assert values[0] == pooled == pytest.approx(expected, abs=1e-15)
