import math

import pytest

from idiolect.study.intervals import from_published
from idiolect.study.published import Published
from idiolect.study.summary import OverSeeds, over_seeds
from idiolect.study.verdict import RULE, VERDICTS, in_words, interval_of, sentence, verdict_of


def published(within=1.0, std=None, **more):
    return Published(model="global", value=90.0, std=std, within=within, **more)


@pytest.mark.parametrize(
    ("seeds", "within", "verdict"),
    [
        ([90.5, 90.6, 90.7], 1.0, "agrees"),  # [+0.35, +0.85]: without 0, within the margin
        ([90.5, 90.6, 90.7], 0.85, "agrees"),
        ([90.5, 90.6, 90.7], 0.8, "close"),  # the mean is within, the interval is not
        ([90.5, 90.6, 90.7], 0.5, "differs"),
        ([89.0, 92.0, 92.0], 0.5, "consistent, wide"),  # 0 is in it, and more than the margin
        ([89.0, 92.0, 92.0], 6.0, "agrees"),
        ([89.0, 90.0, 91.5], 0.5, "consistent, wide"),  # also where the mean is within the margin
        ([90.5, 90.5, 90.5], 1.0, "close"),  # without a spread there is no interval
        ([91.5, 91.5, 91.5], 1.0, "differs"),
        ([88.0, 87.9, 88.1], 1.0, "differs"),
        ([90.9], 1.0, "close"),  # one seed proves nothing
        ([90.0], 1.0, "close"),
        ([91.0], 1.0, "close"),
        ([91.1], 1.0, "differs"),
        ([88.9], 1.0, "differs"),
    ],
)
def test_the_rule(seeds, within, verdict):
    assert verdict_of(over_seeds(seeds), published(within)) == verdict


def test_the_published_deviation_widens_the_interval():
    measured = over_seeds([91.5, 91.6, 91.7])
    assert verdict_of(measured, published()) == "differs"
    assert verdict_of(measured, published(std=1.0)) == "consistent, wide"
    assert verdict_of(measured, published(within=4.0, std=1.0)) == "agrees"
    assert verdict_of(measured, published(std=1.0, runs=10)) == "differs"
    interval = interval_of(measured, published(std=1.0, runs=10))
    assert interval == from_published(measured.mean, measured.std, 3, 90.0, 1.0, 10)
    assert interval_of(over_seeds([91.5]), published(std=1.0)) is None


def test_half_of_a_published_interval_is_1_96_standard_errors():
    """Not a deviation over runs: of however many runs or clients it is the mean, h / 1.96 is the mean's error."""
    measured = over_seeds([91.5, 91.6, 91.7])
    expected = from_published(measured.mean, measured.std, 3, 90.0, 1.0 / 1.959964)
    for runs in (1, 10):
        interval = interval_of(measured, published(half_width=1.0, runs=runs))
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    exact = interval_of(over_seeds([91.5, 91.5]), published(half_width=1.0))
    assert (exact.low, exact.high) == pytest.approx((0.5, 2.5))
    assert verdict_of(measured, published(std=1.0)) == "consistent, wide"
    assert verdict_of(measured, published(half_width=1.0)) == "differs"


def test_other_data_reproduce_nothing():
    assert verdict_of(over_seeds([90.0, 90.1]), published(other_data="the test part alone")) == "other data"
    assert verdict_of(OverSeeds(math.nan, math.nan, math.nan, 2), published()) == "not measured"


def test_words():
    assert in_words("differs", published()) == "differs, unexplained"
    assert in_words("differs", published(explained="pfedme/deviations")) == "differs, explained"
    assert in_words("close", published(explained="pfedme/deviations")) == "close"
    assert sentence([], 0) == ""
    assert sentence(["agrees"], 0) == "1 published value: 1 agrees, 0 are close, 0 differ."
    many = ["agrees", "differs", "differs", "other data"]
    assert sentence(many, 1) == (
        "4 published values: 1 agrees, 0 are close, 2 differ (1 explained), 1 rests on other data."
    )
    assert sentence(["agrees", "consistent, wide"], 0) == (
        "2 published values: 1 agrees, 1 is consistent with a wide interval, 0 are close, 0 differ."
    )
    assert "2 are consistent with a wide interval" in sentence(["consistent, wide"] * 2, 0)
    assert all(f"**{verdict}**" in RULE for verdict in VERDICTS[:5])
