import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from idiolect.metrics.probabilities import BINS, ECE, Brier, LogLoss
from tests.metrics.scored import check, classes, scored, softmax


@pytest.mark.parametrize("count", [2, 5])
def test_it_is_scikit_learns(count):
    check(LogLoss(), classes(count), lambda z, y: log_loss(y, softmax(z), labels=range(count)))


def test_a_probability_that_rounds_to_nothing_has_a_loss():
    logits = np.array([[0.0, 200.0]], np.float32)
    assert scored(LogLoss(), [(logits, np.array([0], np.int32))])[1] == pytest.approx(200)


def by_sklearn(logits, labels):
    count, probabilities = logits.shape[1], softmax(logits)
    if count == 2:
        return brier_score_loss(labels, probabilities[:, 1], labels=[0, 1])
    return brier_score_loss(labels, probabilities, labels=range(count))


@pytest.mark.parametrize("count", [2, 5])
def test_it_is_scikit_learns_brier(count):
    check(Brier(), classes(count), by_sklearn)


def test_of_a_client_with_two_classes_of_its_own_it_is_that_of_two():
    parts = classes(2)
    wide = [(np.pad(z, [(0, 0), (0, 3)], constant_values=9), y) for z, y in parts]
    np.testing.assert_allclose(scored(Brier(), wide, own=[2] * len(wide))[0], scored(Brier(), parts)[0], rtol=1e-6)


def by_definition(logits, labels):
    """Guo et al., equation 3, bin by bin; within a bin as scikit-learn's calibration curve has it."""
    probabilities = softmax(logits)
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    total, share, mean = 0.0, *calibration_curve(right, confidence, n_bins=BINS, strategy="uniform")
    for b, (accuracy, sure) in enumerate(zip(share, mean, strict=True)):
        del b
        inside = np.ceil(confidence * BINS) == np.ceil(sure * BINS)
        assert sure == pytest.approx(confidence[inside].mean())
        total += inside.mean() * abs(accuracy - sure)
    return total


@pytest.mark.parametrize("count", [2, 5])
def test_it_is_the_papers(count):
    check(ECE(), classes(count), by_definition)


def test_by_hand():
    """Two classes: 60 % sure, right twice of four; 90 % sure, right once of one."""
    z = lambda p: [np.log(p), np.log(1 - p)]  # noqa: E731
    logits, labels = [z(0.6)] * 4 + [z(0.9)], [0, 0, 1, 1, 0]
    values, pooled = scored(ECE(), [(np.array(logits, np.float32), np.array(labels, np.int32))], rows=2)
    assert values[0] == pooled == pytest.approx(4 / 5 * 0.1 + 1 / 5 * 0.1, rel=1e-5)


def test_the_surest_and_the_least_sure_have_a_bin():
    logits = np.array([[200.0, 0.0], [0.0, 0.0]], np.float32)
    values, _ = scored(ECE(), [(logits, np.array([1, 1], np.int32))])
    assert values[0] == pytest.approx((1 + 0.5) / 2)


def test_fifteen_bins_of_equal_width():
    """40 classes: 5 % sure and right is in the first bin, 10 % sure and wrong in the second: they do not cancel."""
    assert BINS == 15

    def sure(p):
        return np.log(np.array([p] + [(1 - p) / 39] * 39, np.float32))

    samples = np.stack([sure(0.05), sure(0.10)]), np.array([0, 1], np.int32)
    values, _ = scored(ECE(), [samples])
    assert values[0] == pytest.approx((0.95 + 0.10) / 2, rel=1e-5)
    both = np.stack([sure(0.90), sure(0.999)]), np.array([0, 1], np.int32)  # the last two bins
    values, _ = scored(ECE(), [both])
    assert values[0] == pytest.approx((0.10 + 0.999) / 2, rel=1e-5)
