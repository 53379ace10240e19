import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from idiolect.metrics.brier import Brier
from tests.metrics.scored import check, classes, scored, softmax


def by_sklearn(logits, labels):
    count, probabilities = logits.shape[1], softmax(logits)
    if count == 2:
        return brier_score_loss(labels, probabilities[:, 1], labels=[0, 1])
    return brier_score_loss(labels, probabilities, labels=range(count))


@pytest.mark.parametrize("count", [2, 5])
def test_it_is_scikit_learns(count):
    check(Brier(), classes(count), by_sklearn)


def test_of_a_client_with_two_classes_of_its_own_it_is_that_of_two():
    parts = classes(2)
    wide = [(np.pad(z, [(0, 0), (0, 3)], constant_values=9), y) for z, y in parts]
    np.testing.assert_allclose(scored(Brier(), wide, own=[2] * len(wide))[0], scored(Brier(), parts)[0], rtol=1e-6)
