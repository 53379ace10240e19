import warnings

import pytest
from sklearn.metrics import balanced_accuracy_score

from idiolect.metrics.balanced_accuracy import BalancedAccuracy
from tests.metrics.scored import check, classes


def by_sklearn(logits, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class that is predicted and not there
        return balanced_accuracy_score(labels, logits.argmax(axis=1))


@pytest.mark.parametrize("count", [2, 5])
def test_it_is_scikit_learns(count):
    check(BalancedAccuracy(), classes(count), by_sklearn)
