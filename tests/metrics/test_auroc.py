import math
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from idiolect.metrics.auroc import AUROC, log_odds
from tests.metrics.scored import check, classes, scored, softmax


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


def test_many_samples_keep_their_last_digits():
    """Sums of 10^9 half wins, which float32 would round one after the other."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 60_000).astype(np.int32)
    score = (rng.normal(size=60_000) + 0.3 * labels).astype(np.float32)
    logits = np.stack([np.zeros_like(score), score], axis=1)
    assert scored(AUROC(), [(logits, labels)], rows=256)[1] == pytest.approx(roc_auc_score(labels, score), abs=1e-7)


def test_log_odds():
    """They rank as probabilities do, and go on where those round to 1."""
    z = np.array([1.0, -2.0, 0.5, 1.0])
    p = softmax(z[None])[0]
    np.testing.assert_allclose(log_odds(jnp.asarray(z, jnp.float32)), np.log(p / (1 - p)), rtol=1e-5)
    np.testing.assert_allclose(log_odds(jnp.array([60.0, 0.0])), [60, -60], rtol=1e-6)
    assert np.array_equal(log_odds(jnp.zeros(3)), log_odds(jnp.full(3, 1.1)))  # equal probabilities, equal odds
