import pytest
from sklearn.metrics import accuracy_score

from idiolect.metrics.accuracy import Accuracy
from tests.metrics.scored import check, classes


@pytest.mark.parametrize("count", [2, 5])
def test_it_is_scikit_learns(count):
    check(Accuracy(), classes(count), lambda z, y: accuracy_score(y, z.argmax(axis=1)))
