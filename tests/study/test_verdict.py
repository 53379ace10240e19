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
        ([89.0, 92.0, 92.0], 0.5, "agrees"),  # wide, but 0 is in it
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
    assert verdict_of(measured, published(std=1.0)) == "agrees"
    assert verdict_of(measured, published(std=1.0, runs=10)) == "differs"
    interval = interval_of(measured, published(std=1.0, runs=10))
    assert interval == from_published(measured.mean, measured.std, 3, 90.0, 1.0, 10)
    assert interval_of(over_seeds([91.5]), published(std=1.0)) is None


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
    assert all(f"**{verdict}**" in RULE for verdict in VERDICTS[:4])
