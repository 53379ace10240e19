import math

import numpy as np
import pytest
from sklearn import metrics as reference

from idiolect.metrics.accuracy import Accuracy
from idiolect.metrics.base import measure_rows, segment_sum, wins
from idiolect.metrics.registry import METRICS
from idiolect.metrics.regression import MSE
from tests.metrics.scored import SIZES, classes, numbers, scored

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


@pytest.mark.parametrize("name", METRICS)
def test_the_clients_values_give_that_over_all_samples_just_for_means(name):
    metric = METRICS[name]
    values, pooled = scored(metric, classes(3) if metric.task == "classification" else numbers())
    known = np.isfinite(values)
    mean = np.average(values[known], weights=np.array(SIZES)[known])
    assert np.isclose(mean, pooled, rtol=1e-5) == metric.is_mean


def test_sums_of_whole_numbers_are_exact():
    rng = np.random.default_rng(0)
    values, owner = rng.integers(0, 2**40, 4000), rng.integers(0, 3, 4000)
    expected = [values[owner == client].sum() for client in range(4)]
    np.testing.assert_array_equal(segment_sum(values, owner, 4), expected)


def test_wins_pair_by_pair():
    rng = np.random.default_rng(1)
    owner, score = rng.integers(0, 4, 300), rng.integers(0, 12, 300).astype(float)
    positive = rng.random(300) < 0.3
    found = wins(score, positive, owner, 5)
    for client in range(5):
        mine = owner == client
        ours, theirs = score[mine & positive][:, None], score[mine & ~positive][None]
        assert found[client] == (ours > theirs).sum() + (ours == theirs).sum() / 2


def test_a_tie_at_the_very_start_is_half_a_win_and_nobody_wins_nothing():
    found = wins(np.array([1.0, 1.0, 2.0]), np.array([False, True, True]), np.array([0, 0, 0]), 1)
    assert found.tolist() == [1.5]
    assert wins(np.zeros(0), np.zeros(0, bool), np.zeros(0, int), 2).tolist() == [0, 0]


RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 200).astype(np.int32)
OUTPUTS = (RNG.normal(size=(200, 3)) + 1.5 * np.eye(3)[LABELS]).astype(np.float32)


def softmax(outputs):
    odds = np.exp(outputs.astype(np.float64))
    return odds / odds.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("accuracy", lambda: reference.accuracy_score(LABELS, OUTPUTS.argmax(axis=1))),
        ("macro-f1", lambda: reference.f1_score(LABELS, OUTPUTS.argmax(axis=1), average="macro")),
        ("balanced-accuracy", lambda: reference.balanced_accuracy_score(LABELS, OUTPUTS.argmax(axis=1))),
        ("log-loss", lambda: reference.log_loss(LABELS, softmax(OUTPUTS))),
        ("auroc", lambda: reference.roc_auc_score(LABELS, softmax(OUTPUTS), multi_class="ovr")),
    ],
)
def test_classes(name, expected):
    assert measure_rows([METRICS[name]], OUTPUTS, LABELS)[name] == pytest.approx(expected(), rel=1e-5)


def test_numbers_are_told_in_the_units_before_scaling():
    truth = RNG.normal(50_000, 9_000, 100)
    said = truth + RNG.normal(0, 2_000, 100)
    scale, mean = 9_000.0, 50_000.0
    scaled, outputs = (((v - mean) / scale).astype(np.float32) for v in (truth, said))
    found = measure_rows([METRICS[name] for name in ("mse", "rmse", "mae", "r2")], outputs[:, None], scaled, scale)
    expected = {
        "mse": reference.mean_squared_error(truth, said),
        "rmse": reference.root_mean_squared_error(truth, said),
        "mae": reference.mean_absolute_error(truth, said),
        "r2": reference.r2_score(truth, said),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-4), name


def test_what_has_no_value_is_nan():
    found = measure_rows([METRICS["auroc"]], OUTPUTS[:5], np.zeros(5, np.int32))
    assert np.isnan(found["auroc"])
