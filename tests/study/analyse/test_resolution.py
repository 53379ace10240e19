"""By how much one test sample changes a score."""

import math

import numpy as np
import pytest

from idiolect.metrics.registry import METRICS
from idiolect.study.analyse.resolution import of_clients, of_samples, of_worst, step
from tests.report.stores import scored

ACCURACY = METRICS["accuracy"]


def runs(*counts):
    return [scored("m", "test", np.full(len(count), 0.5), np.asarray(count)) for count in counts]


def test_one_right_answer_more_changes_an_accuracy_by_its_step():
    counts = np.array([10, 10, 20, 0])
    before, after = (scored("m", "test", np.array([right / 10, 0.5, 0.5, 0.0]), counts) for right in (5, 6))
    change = after.pooled["accuracy"] - before.pooled["accuracy"]
    assert of_samples([before, after], ACCURACY) == pytest.approx(change) == 1 / 40
    mean = [np.mean(each.values["accuracy"][counts > 0]) for each in (before, after)]
    assert of_clients([before, after], ACCURACY) == pytest.approx(mean[1] - mean[0])


def test_the_run_with_the_fewest_samples_and_the_smallest_client_have_the_largest_step():
    assert of_samples(runs((10, 30), (10, 10)), ACCURACY) == 1 / 20
    assert of_clients(runs((10, 30), (5, 20), (40, 40, 40, 40)), ACCURACY) == 1 / 10
    assert of_worst(runs((4,) + (50,) * 20), ACCURACY) == 1 / (3 * 4)  # the worst tenth of 21 clients is three


def test_metrics_without_steps_and_those_of_classes():
    for name in ("mse", "mae", "r2", "rmse", "log-loss", "brier", "ece"):
        assert of_samples(runs((10, 30)), METRICS[name]) == of_clients([], METRICS[name]) == 0
    for name in ("macro-f1", "balanced-accuracy", "auroc"):
        assert math.isnan(step(40, METRICS[name]))
        assert math.isnan(of_clients(runs((10, 30)), METRICS[name]))


def test_without_samples_nothing_is_known():
    assert all(math.isnan(each) for each in (step(0, ACCURACY), of_samples([], ACCURACY), of_clients([], ACCURACY)))
