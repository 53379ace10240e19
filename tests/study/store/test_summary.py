"""Summaries by hand: who the worst tenth are, what a deviation divides by, who is hurt, how wide an interval is."""

import math

import numpy as np
import pytest

from idiolect.metrics.registry import METRICS
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.store.summary import OverSeeds, half_width, half_widths, hurt_fraction, over_seeds, summarise

NAN = math.nan
ACCURACY, MSE = METRICS["accuracy"], METRICS["mse"]


def scores(values, counts=None, loss=None, pooled=0.5, metric="accuracy"):
    values = np.asarray(values, float)
    counts = np.ones(len(values), np.int64) if counts is None else np.asarray(counts, np.int64)
    loss = np.zeros(len(values)) if loss is None else np.asarray(loss, float)
    return ClientScores("global", "test", counts, loss, {metric: values}, {metric: pooled})


@pytest.mark.parametrize(
    ("clients", "tenth"), [(1, 1), (9, 1), (10, 1), (11, 2), (15, 2), (19, 2), (20, 2), (21, 3), (30, 3)]
)
def test_the_worst_tenth_is_rounded_up(clients, tenth):
    """Of 11, 15 or 19 clients the two worst; of 20 the two worst, of 21 the three worst."""
    values = np.random.default_rng(clients).permutation(clients) / 100
    assert summarise(scores(values), ACCURACY).worst10 == pytest.approx(np.mean(np.arange(tenth)) / 100)
    high = summarise(scores(values, metric="mse"), MSE)
    assert high.worst10 == pytest.approx(np.mean(np.arange(clients - tenth, clients)) / 100)


def test_by_hand():
    """Four clients with a value, one without samples, one with samples that have no value."""
    found = summarise(scores([0.2, 0.4, NAN, 1.0, 0.8, NAN], [1, 2, 0, 3, 4, 5], [1, 2, NAN, 3, 4, 6], 0.7), ACCURACY)
    assert found.pooled == 0.7  # as it was measured: of most metrics it is no mean of the clients' values
    assert found.mean == pytest.approx(0.6)
    assert found.std == pytest.approx(math.sqrt((0.16 + 0.04 + 0.16 + 0.04) / 4))  # divided by 4, not by 3
    assert found.median == pytest.approx(0.6)
    assert (found.worst, found.worst10) == (0.2, 0.2)
    assert found.loss == pytest.approx((1 * 1 + 2 * 2 + 3 * 3 + 4 * 4 + 5 * 6) / 15)  # by samples, not by clients
    assert (found.clients, found.samples) == (4, 15)
    assert found.deciles == pytest.approx(np.quantile([0.2, 0.4, 0.8, 1.0], np.arange(1, 10) / 10))
    assert found.to_dict()["worst10"] == 0.2


def test_the_worst_error_is_the_highest():
    found = summarise(scores([0.2, 0.4, 1.0], metric="mse"), MSE)
    assert (found.worst, found.worst10) == (1.0, 1.0)


def test_no_value_is_no_number_and_no_warning():
    found = summarise(scores([NAN, NAN], [0, 3], [NAN, 2.0], NAN), ACCURACY)
    numbers = (found.pooled, found.mean, found.std, found.median, found.worst, found.worst10, *found.deciles)
    assert all(math.isnan(number) for number in numbers)
    assert (found.loss, found.clients, found.samples) == (2.0, 0, 3)
    assert math.isnan(summarise(scores([NAN], [0], [NAN], NAN), ACCURACY).loss)


def test_ties_are_not_hurt():
    values, reference = np.array([0.5, 0.4, 0.6, NAN, 0.1]), np.array([0.5, 0.5, 0.5, 0.5, NAN])
    assert hurt_fraction(values, reference, ACCURACY) == pytest.approx(1 / 3)
    assert hurt_fraction(values, reference, MSE) == pytest.approx(1 / 3)
    assert hurt_fraction(reference, reference, ACCURACY) == hurt_fraction(reference, reference, MSE) == 0
    worse = np.array([0.1, 0.2, 0.6, NAN, 0.1])
    assert hurt_fraction(worse, reference, ACCURACY) == pytest.approx(2 / 3)
    assert hurt_fraction(worse, reference, MSE) == pytest.approx(1 / 3)
    assert math.isnan(hurt_fraction(np.array([NAN]), np.array([1.0]), ACCURACY))


def test_the_interval_is_students_with_one_degree_less_than_seeds():
    """Table of Student's t, two-sided 95 %: 12.706, 4.303, 3.182 for 1, 2, 3 degrees of freedom."""
    for values, quantile in (([1.0, 3.0], 12.7062), ([1.0, 2.0, 3.0], 4.30265), ([0.0, 1.0, 2.0, 5.0], 3.18245)):
        found, n = over_seeds(values), len(values)
        std = math.sqrt(sum((v - found.mean) ** 2 for v in values) / (n - 1))
        assert (found.mean, found.seeds) == (pytest.approx(sum(values) / n), n)
        assert found.std == pytest.approx(std)
        assert found.half_width == pytest.approx(quantile * std / math.sqrt(n), rel=1e-5)
    assert over_seeds([0.0, 1.0, 2.0, 5.0], 0.9).half_width == pytest.approx(
        2.353363 * over_seeds([0, 1, 2, 5]).std / 2
    )


def test_one_seed_and_none():
    one, none = over_seeds([0.3]), over_seeds([])
    assert (one.mean, one.seeds, none.seeds) == (0.3, 1, 0)
    assert all(math.isnan(v) for v in (one.std, one.half_width, none.mean, none.std, none.half_width))


def test_equal_scores_are_equal_whichever_nan_they_hold():
    """`float("nan")` makes a new object each time: Python compares neither by identity then."""
    one, same = (OverSeeds(0.5, float("nan"), float("nan"), 1) for _ in range(2))
    assert one == same
    assert len({one, same}) == 1
    assert one != OverSeeds(0.5, float("nan"), float("nan"), 2)
    assert one != OverSeeds(0.5, float("nan"), 0.0, 1)
    assert one != OverSeeds(float("nan"), float("nan"), float("nan"), 1)
    assert one != (0.5, None, None, 1)


def test_the_worst_tenth_is_of_the_clients_with_a_value():
    """Ten clients have one and ten have none: the tenth is one client, not two."""
    values = [*np.arange(10) / 10, *[NAN] * 10]
    assert summarise(scores(values, [1] * 10 + [0] * 10), ACCURACY).worst10 == 0.0
    assert summarise(scores(values, metric="mse"), MSE).worst10 == 0.9


def test_half_of_an_interval_of_several_numbers_at_once():
    """Of two seeds 12.7062 std / sqrt(2), of three 4.30265 std / sqrt(3), each number by itself."""
    two = half_widths(np.array([[1.0, 5.0], [3.0, 5.0]]))
    assert two == pytest.approx([12.7062047 * 1.0, 0.0])  # std = sqrt(2)
    three = half_widths(np.array([[1.0], [2.0], [3.0]]))
    assert three == pytest.approx([4.3026527 / math.sqrt(3)])
    assert half_width(2.0, 4) == pytest.approx(3.1824463)
    assert half_width(2.0, 4, 0.9) == pytest.approx(2.3533634)
    assert math.isnan(half_width(2.0, 1))
    one = half_widths(np.ones((1, 2, 3)))
    assert one.shape == (2, 3)
    assert np.isnan(one).all()
    assert len(summarise(scores([NAN]), ACCURACY).deciles) == len(summarise(scores([0.5]), ACCURACY).deciles) == 9
