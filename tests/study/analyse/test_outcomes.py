"""What a line says beside a published value, number by number."""

import math
from dataclasses import replace

import pytest

from idiolect.report.view.columns import hurt_column
from idiolect.study.analyse.intervals import from_published
from idiolect.study.analyse.outcomes import (
    FEDAVG,
    OWN,
    RULE,
    VERDICTS,
    GapLine,
    Line,
    in_words,
    interval_of,
    sentence,
    verdict_of,
)
from idiolect.study.spec.published import Gap, Published, published_metric
from idiolect.study.store.summary import OverSeeds, over_seeds

NOTHING = over_seeds([])


def line(published=None, metric="accuracy", failed=0, **metrics):
    values = {name.replace("_", "-"): over_seeds(numbers) for name, numbers in metrics.items()}
    pooled = values.get(metric, NOTHING)
    rest = dict.fromkeys(("mean", "spread", "worst10", "worst", "loss", "seconds"), NOTHING)
    told = None if published is None else Published(model="global", **published)
    rest |= {"hurt_local": None, "hurt_global": None, "rounds": (9,), "published": told, "failed": failed}
    return Line("c", "fedavg", "global", metric, pooled, metrics=values, **rest)


def test_the_difference_is_in_the_published_values_units():
    assert line({"value": 70.0}, accuracy=[0.72, 0.73]).difference == pytest.approx(2.5)
    assert line({"value": 0.7}, metric="mse", mse=[0.72, 0.73]).difference == pytest.approx(0.025)
    assert line(accuracy=[0.7]).difference is None


@pytest.mark.parametrize("measured", [{}, {"macro_f1": [float("nan")] * 2}], ids=["not measured", "no value"])
def test_a_published_value_without_a_measured_one_has_no_difference(measured):
    found = line({"value": 70.0, "metric": "macro-f1"}, accuracy=[0.7, 0.8], **measured)
    assert (found.compared, found.difference, found.interval, found.verdict) == (None, None, None, "not measured")


def test_the_heading_names_the_shared_model_that_clients_are_compared_with():
    assert hurt_column([replace(line(), global_of=(FEDAVG,))]) == "hurt vs FedAvg"
    assert hurt_column([replace(line(), global_of=(OWN,))] * 2) == "hurt vs own global"
    assert hurt_column([replace(line(), global_of=(FEDAVG, OWN))]) == "hurt vs global"


def test_a_published_value_is_of_its_metric_whatever_is_compared():
    both = {"accuracy": [0.8], "macro_f1": [0.6], "log_loss": [0.5]}
    named = line({"value": 61.0, "metric": "macro-f1"}, metric="log-loss", **both)
    assert (named.published_metric, named.difference) == ("macro-f1", pytest.approx(-1))
    unnamed = line({"value": 79.0}, metric="log-loss", **both)
    assert (unnamed.published_metric, unnamed.difference) == ("accuracy", pytest.approx(1))
    assert line({"value": 0.4, "metric": "log-loss"}, **both).difference == pytest.approx(0.1)
    assert line(metric="rmse", rmse=[1.0]).published_metric == "mse"


def test_verdicts():
    """In the published value's units, and only where there is something to compare."""
    near, far = {"value": 70.0, "within": 2.5}, {"value": 70.0, "within": 2.4}
    assert line(near, accuracy=[0.725]).verdict == line(near, accuracy=[0.675]).verdict == "close"
    assert line(far, accuracy=[0.725]).verdict == line(far, accuracy=[0.675]).verdict == "differs"
    assert line(near, accuracy=[0.72, 0.72, 0.721]).verdict == "agrees"
    assert line(accuracy=[0.725]).verdict is None
    assert line(near).verdict == "not run"
    assert line(near, failed=1).verdict == "diverged"
    assert line(near, failed=1, accuracy=[0.7]).verdict == "close"
    assert line({**near, "metric": "macro-f1"}, accuracy=[0.7], macro_f1=[float("nan")]).verdict == "not measured"
    assert line({**near, "metric": "ece"}, accuracy=[0.7]).verdict == "not measured"


def test_gaps():
    gap = Gap(larger="a/global", smaller="b/global", value=1.0, within=0.25)
    found = GapLine(gap, over_seeds([1.0, 1.5]))
    assert found.verdict == "consistent, wide"  # 0.25 with an interval of more than 3 points
    assert (found.difference, found.interval.high) == (0.25, pytest.approx(0.25 + over_seeds([1.0, 1.5]).half_width))
    assert replace(found, measured=over_seeds([1.3, 1.3])).verdict == "differs"
    assert replace(found, measured=over_seeds([0.7])).verdict == "differs"
    assert replace(found, measured=over_seeds([0.75])).verdict == "close"
    nothing = replace(found, measured=NOTHING)
    assert (nothing.verdict, nothing.difference, nothing.interval) == ("not run", None, None)


def test_the_loss_can_be_published():
    """It is measured beside the metrics, and lower is better."""
    told = replace(line({"value": 0.4, "metric": "loss"}, accuracy=[0.8]), loss=over_seeds([0.5]))
    assert (told.published_metric, told.difference, told.verdict) == ("loss", pytest.approx(0.1), "close")
    assert replace(told, loss=NOTHING).verdict == "not measured"
    assert not published_metric("loss").higher


def test_what_is_compared_is_in_per_cent_in_all_its_parts():
    """Of 0.72 and 0.73: mean 72.5, deviation 1 / sqrt(2), half-width 12.706 times 0.5."""
    compared = line({"value": 70.0}, accuracy=[0.72, 0.73]).compared
    assert (compared.mean, compared.seeds) == (pytest.approx(72.5), 2)
    assert compared.std == pytest.approx(0.5**0.5)
    assert compared.half_width == pytest.approx(12.7062047 * 0.5)
    error = line({"value": 0.7}, metric="mse", mse=[0.72, 0.73]).compared
    assert (error.mean, error.std) == (pytest.approx(0.725), pytest.approx(0.01 * 0.5**0.5))
    assert error.half_width == pytest.approx(12.7062047 * 0.005)


def test_a_line_and_a_gap_have_the_interval_of_their_difference():
    """Without a published deviation it is Student's, around measured minus published; one seed has none."""
    found = line({"value": 70.0}, accuracy=[0.72, 0.73]).interval
    assert (found.low, found.high) == pytest.approx((2.5 - 12.7062047 * 0.5, 2.5 + 12.7062047 * 0.5))
    assert line({"value": 70.0}, accuracy=[0.72]).interval is None
    assert line(accuracy=[0.72, 0.73]).interval is None
    assert line(accuracy=[0.72, 0.73]).compared is None
    gap = GapLine(Gap(larger="a/global", smaller="b/global", value=1.0, explained="why"), over_seeds([1.0, 1.5]))
    assert (gap.interval.low, gap.interval.high) == pytest.approx(
        (0.25 - 12.7062047 * 0.25, 0.25 + 12.7062047 * 0.25)
    )
    assert (gap.published.value, gap.published.within, gap.published.explained) == (1.0, 0.5, "why")


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
