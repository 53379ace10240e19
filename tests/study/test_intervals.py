import math

import numpy as np
import pytest
from scipy import stats

from idiolect.core.errors import ConfigError
from idiolect.study.intervals import Difference, from_published, holm, paired, resampled

ONE, OTHER = [91.2, 90.4, 92.0, 91.7], [90.9, 90.5, 91.1, 90.6]


def test_pairs_are_scipys_paired_test():
    expected = stats.ttest_rel(ONE, OTHER)
    low, high = expected.confidence_interval(0.95)
    measured = paired(ONE, OTHER)
    values = (measured.mean, measured.low, measured.high, measured.p)
    assert values == pytest.approx((np.mean(ONE) - np.mean(OTHER), low, high, expected.pvalue))
    assert measured.count == 4
    narrow = paired(ONE, OTHER, 0.8)
    assert (narrow.low, narrow.high) == pytest.approx(tuple(expected.confidence_interval(0.8)))


def test_the_same_numbers_differ_by_nothing_and_equal_gaps_for_sure():
    assert paired([1.0, 2.0], [1.0, 2.0]) == Difference(0, 0, 0, 1.0, 2)
    assert paired([2.0, 3.0], [1.0, 2.0]) == Difference(1, 1, 1, 0.0, 2)


def test_an_exact_published_value_is_scipys_test_of_one_sample():
    expected = stats.ttest_1samp(ONE, 90.0)
    measured = from_published(np.mean(ONE), np.std(ONE, ddof=1), 4, 90.0)
    assert (measured.low, measured.high) == pytest.approx(tuple(expected.confidence_interval(0.95) - np.array(90.0)))
    assert measured.p == pytest.approx(expected.pvalue)
    assert (measured.mean, measured.count) == (pytest.approx(np.mean(ONE) - 90.0), 4)


def test_a_published_mean_of_several_runs_is_scipys_welch_test():
    expected = stats.ttest_ind(ONE, [*OTHER, 90.0], equal_var=False)
    theirs = [*OTHER, 90.0]
    measured = from_published(np.mean(ONE), np.std(ONE, ddof=1), 4, np.mean(theirs), np.std(theirs, ddof=1), 5)
    low, high = expected.confidence_interval(0.95)
    assert (measured.low, measured.high, measured.p) == pytest.approx((low, high, expected.pvalue))


def test_a_published_deviation_of_unknown_runs_widens_the_interval_by_itself():
    measured = from_published(91.0, 0.5, 4, 90.0, 0.3)
    error = math.sqrt(0.25 / 4 + 0.09)
    half = stats.t.ppf(0.975, error**4 / ((0.25 / 4) ** 2 / 3)) * error
    assert (measured.low, measured.high) == pytest.approx((1 - half, 1 + half))
    certain = from_published(91.0, 0.0, 4, 90.0, 0.3)  # ours do not scatter: theirs is known, so normal
    assert certain.high - 1 == pytest.approx(stats.norm.ppf(0.975) * 0.3)


def test_the_intervals_cover_the_truth_19_times_in_20():
    rng, draws = np.random.default_rng(0), 1000
    covered = [0, 0]
    for _ in range(draws):
        ours, theirs = rng.normal(3.0, 1.0, 5), rng.normal(1.0, 2.0, 7)
        welch = from_published(ours.mean(), ours.std(ddof=1), 5, theirs.mean(), theirs.std(ddof=1), 7)
        base = rng.normal(size=5)
        pairs = paired(list(base + rng.normal(2.0, 0.5, 5)), list(base))
        for k, interval in enumerate((welch, pairs)):
            covered[k] += interval.low <= 2.0 <= interval.high
    for count in covered:  # within what a fair coin of 0.95 gives in 999 of 1,000 cases
        assert stats.binomtest(count, draws, 0.95).pvalue > 0.001


def test_one_seed_says_nothing():
    with pytest.raises(ConfigError, match=r"at least two pairs \(seeds\), there is 1"):
        paired([1.0], [2.0])
    with pytest.raises(ConfigError, match="at least two seeds, there is 1"):
        from_published(1.0, math.nan, 1, 2.0)
    with pytest.raises(ConfigError, match="not 1 and 2"):
        paired([1.0], [2.0, 3.0])


def test_what_an_interval_holds():
    assert Difference(0.5, 0.0, 1.0, 0.05, 3).includes_zero
    assert not Difference(0.5, 0.1, 0.9, 0.01, 3).includes_zero
    assert not Difference(-0.5, -0.9, -0.1, 0.01, 3).includes_zero
    assert Difference(0.5, 0.1, 1.0, 0.01, 3).within(1.0)
    assert not Difference(0.5, 0.1, 1.1, 0.01, 3).within(1.0)
    assert not Difference(-0.5, -1.1, -0.1, 0.01, 3).within(1.0)


def test_holm_by_hand_and_as_statsmodels_has_it():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    rng = np.random.default_rng(1)
    for size in (1, 2, 9):
        p = rng.random(size) ** 3
        assert holm(list(p)) == pytest.approx(list(multitest.multipletests(p, method="holm")[1]))


def test_gaps_of_divisions_have_the_corrected_resampled_interval():
    """Of 1, 2, 3 and 6: mean 3, variance 14 / 3; with 3 training rows per test row error^2 = (1/4 + 1/3) 14/3."""
    measured, error = resampled([1.0, 2.0, 3.0, 6.0], 1 / 3), math.sqrt(7 / 12 * 14 / 3)
    assert (measured.mean, measured.count) == (3.0, 4)
    half = 3.182446305 * error  # Student's t with 3 degrees of freedom, 97.5 %
    assert (measured.low, measured.high) == pytest.approx((3 - half, 3 + half))
    assert measured.p == pytest.approx(2 * stats.t.sf(3 / error, 3))
    narrow = resampled([1.0, 2.0, 3.0, 6.0], 1 / 3, 0.5)
    assert narrow.high - 3 == pytest.approx(0.764892328 * error)  # 75 %
    turned = resampled([-1.0, -2.0, -3.0, -6.0], 1 / 3)
    assert (turned.low, turned.high, turned.p) == pytest.approx((-measured.high, -measured.low, measured.p))


def test_divisions_that_share_no_training_rows_have_students_interval():
    expected = stats.ttest_1samp(ONE, 90.0)
    measured = resampled([value - 90.0 for value in ONE], 0.0)
    assert (measured.low, measured.high, measured.p) == pytest.approx(
        (*(expected.confidence_interval(0.95) - np.array(90.0)), expected.pvalue)
    )
    with pytest.raises(ConfigError, match="at least two divisions, there is 1"):
        resampled([1.0], 0.5)
    assert resampled([1.0, 2.0], 0.5).count == 2
