"""The metrics of rows against scikit-learn's."""

import numpy as np
import pytest
from sklearn import metrics as reference

from idiolect.metrics.of_rows import measure_rows
from idiolect.metrics.registry import METRICS

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
