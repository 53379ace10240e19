import numpy as np
import pytest
from sklearn.metrics import log_loss

from idiolect.metrics.log_loss import LogLoss
from tests.metrics.scored import check, classes, scored, softmax


@pytest.mark.parametrize("count", [2, 5])
def test_it_is_scikit_learns(count):
    check(LogLoss(), classes(count), lambda z, y: log_loss(y, softmax(z), labels=range(count)))


def test_a_probability_that_rounds_to_nothing_has_a_loss():
    logits = np.array([[0.0, 200.0]], np.float32)
    assert scored(LogLoss(), [(logits, np.array([0], np.int32))])[1] == pytest.approx(200)
