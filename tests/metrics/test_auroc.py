import math
import warnings

import jax
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from idiolect.metrics.auroc import AUROC, log_odds
from tests.metrics.scored import check, classes, scored, softmax
from tests.tiers import second


def by_sklearn(logits, labels):
    """scikit-learn's one-vs-rest, macro, of the classes that have both; of two classes its binary one."""
    p, there = softmax(logits), np.unique(labels)
    if len(there) == 1:
        return math.nan
    if p.shape[1] == 2:
        return roc_auc_score(labels, p[:, 1])
    if len(there) == p.shape[1]:
        return roc_auc_score(labels, p, multi_class="ovr", average="macro")
    return np.mean([roc_auc_score(labels == c, p[:, c]) for c in there])


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("count", [2, 4])
def test_it_is_scikit_learns(count, ties):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(AUROC(), classes(count, seed=3, ties=ties), by_sklearn)


def test_ties_count_half():
    """Positives 1, 2; negatives 1, 0: of four pairs three are won, one is a tie."""
    logits = np.array([[0, 1], [0, 2], [0, 1], [0, 0]], np.float32)
    values, pooled = scored(AUROC(), [(logits, np.array([1, 1, 0, 0], np.int32))], rows=3)
    assert values[0] == pooled == 3.5 / 4


def test_one_class_has_no_value():
    values, pooled = scored(AUROC(), [(z, np.zeros_like(y)) for z, y in classes(3)])
    assert np.isnan(values).all()
    assert math.isnan(pooled)


def test_clients_that_number_their_own_classes_have_only_their_own():
    parts = [(z[:, :2], y) for z, y in classes(2)]
    wide = [(np.pad(z, [(0, 0), (0, 2)], constant_values=50), y) for z, y in parts]
    values, pooled = scored(AUROC(), wide, own=[2] * len(wide))
    np.testing.assert_allclose(values, scored(AUROC(), parts)[0])
    assert math.isnan(pooled)


def whole_numbers(size: int, count: int, seed: int = 0):
    """Outputs that are small whole numbers, so that many samples have the same odds of a class; and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, count, size).astype(np.int32)
    logits = rng.integers(-3, 4, (size, count)) + 2 * np.eye(count, dtype=int)[labels]
    return logits.astype(np.float32), labels


def exact(logits, labels):
    """scikit-learn's AUROC of exact ranks: the odds of whole numbers are equal just where they are to ten digits."""
    p = softmax(logits.astype(np.float64))
    odds = np.round(np.log(p / (1 - p)), 10)
    return np.mean([roc_auc_score(labels == c, odds[:, c]) for c in range(logits.shape[1])])


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("count", [2, second(3), 6])
def test_ties_that_are_equal_only_mathematically_stay_ties(count, x64):
    """(0, 1, 2) and (0, 2, 1) give the first class the same probability; float32 sums in another order do not."""
    logits, labels = whole_numbers(4000, count)
    with jax.enable_x64(x64):
        values, pooled = scored(AUROC(), [(logits, labels)], rows=256)
    assert values[0] == pooled == pytest.approx(exact(logits, labels), abs=1e-13)


@pytest.mark.parametrize("x64", [False, True])
def test_many_samples_keep_their_last_digits(x64):
    """Sums of 10^9 half wins, of which float32 keeps seven digits."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 60_000).astype(np.int32)
    score = (rng.normal(size=60_000) + 0.3 * labels).astype(np.float32)
    logits = np.stack([np.zeros_like(score), score], axis=1)
    with jax.enable_x64(x64):
        pooled = scored(AUROC(), [(logits, labels)], rows=256)[1]
    assert pooled == pytest.approx(roc_auc_score(labels, score), abs=1e-14)


def test_a_single_pair_more_or_less_is_seen_among_twenty_million():
    """5,000 positives above 4,000 negatives, but for one pair."""
    labels = np.r_[np.ones(5000, int), np.zeros(4000, int)]
    score = np.where(labels == 1, 2.0, 1.0)
    score[0], score[-1] = 1.5, 1.75
    logits = np.stack([np.zeros_like(score), score], axis=1)
    above, below = AUROC().finish((logits, labels), np.zeros(9000, int), 1)
    assert above[0] / below[0] == pytest.approx(1 - 1 / 20e6, abs=1e-15)


def test_log_odds():
    """They rank as probabilities do, and go on where those round to 1."""
    z = np.array([[1.0, -2.0, 0.5, 1.0]])
    p = softmax(z)
    np.testing.assert_allclose(log_odds(z), np.log(p / (1 - p)), rtol=1e-12)
    np.testing.assert_allclose(log_odds(np.array([[60.0, 0.0], [2000.0, 0.0]])), [[60, -60], [2000, -2000]])
    assert np.array_equal(log_odds(np.zeros((1, 3))), log_odds(np.full((1, 3), 1.1)))  # equal odds
    assert log_odds(np.array([[5.0]])).tolist() == [[0.0]]


def test_log_odds_do_not_depend_on_the_order_of_the_other_classes():
    rng = np.random.default_rng(0)
    for _ in range(300):
        others = rng.integers(-4, 5, 6).astype(float)
        rows = np.stack([np.r_[0.0, rng.permutation(others)] for _ in range(5)])
        assert len(set(log_odds(rows)[:, 0].tolist())) == 1
        moved = np.roll(rows, 3, axis=1)
        assert log_odds(moved)[0, 3] == log_odds(rows)[0, 0]
