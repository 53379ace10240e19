import math

import numpy as np
import pytest
from scipy import stats

from idiolect.core.errors import ConfigError
from idiolect.study.analyse.intervals import (
    ALPHA,
    Difference,
    best_of,
    beyond_noise,
    error_of,
    from_published,
    holm,
    holm_tables,
    least_shown,
    p_of,
    paired,
    resampled,
    share,
)

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


def test_equal_differences_have_no_interval_without_steps_and_a_sample_s_error_with_them():
    """Two seeds that differ by the same have no spread: that is the score's resolution, not certainty."""
    for sides in (([2.0, 3.0], [1.0, 2.0]), ([0.1 + 0.2, 0.5], [0.2, 0.4]), ([1.0, 2.0], [1.0, 2.0])):
        found = paired(*sides)
        assert (found.low, found.high, found.p, found.why) == (None, None, None, "equal in every seed")
        assert not any((found.includes_zero, found.within(9), found.above(-9), found.below(9)))
    certain = paired([92.0, 93.0, 94.0], [90.0, 91.0, 92.0], resolution=0.5)
    half = float(stats.t.ppf(0.975, 2)) * 0.5 / math.sqrt(3)
    assert (certain.low, certain.high) == pytest.approx((2 - half, 2 + half))
    assert certain.p == pytest.approx(2 * stats.t.sf(2 / (0.5 / math.sqrt(3)), 2))
    assert paired([1.0, 2.0], [1.0, 2.0], resolution=0.5).p == 1
    assert paired(ONE, OTHER, resolution=0.1) == paired(ONE, OTHER)  # the spread is larger than a step
    assert [certain.above(2 - share * half) for share in (1.1, 0.9)] == [True, False]
    assert [certain.below(2 + share * half) for share in (1.1, 0.9)] == [True, False]


def test_scores_whose_steps_are_not_known_need_five_seeds():
    """A rare class counts in large steps, which a few seeds take alike by chance."""
    few = paired(ONE, OTHER, resolution=math.nan)
    assert (few.p, few.low) == (None, None)
    assert "fewer than 5 seeds" in few.why
    assert paired([*ONE, 91.0], [*OTHER, 90.0], resolution=math.nan) == paired([*ONE, 91.0], [*OTHER, 90.0])


def test_equal_gaps_of_all_divisions_have_no_interval():
    assert resampled([0.25, 0.25, 0.25], 0.3) == Difference(0.25, None, None, None, 3, "equal in every division")
    assert resampled([0.25, 0.25, 0.26], 0.3).p < 0.05


def test_equal_scores_beside_a_value_without_deviation_have_no_interval():
    assert from_published(1.5, 0.0, 2, 1.0) == Difference(0.5, None, None, None, 2, "equal in every seed")
    assert from_published(1.3, 0.0, 2, 1.0, 0.1).high == pytest.approx(0.3 + stats.norm.ppf(0.975) * 0.1)


TABLES, MOST = 2000, 20  # simulated tables, and methods of each
KINDS = ("rows of their own", "one test set, a tenth is hard", "one test set, five are hard", "seeds differ")


def equal_methods(kind: str, samples: int, seeds: int, rng: np.random.Generator) -> np.ndarray:
    """Scores of methods that are equally good, in per cent: (tables, methods, seeds).

    All seeds share one test set, in which most samples are easy for every model or hard for every model; only the
    others differ between runs. Or each run draws its own rows, or seeds are good or bad for all methods alike.
    """
    shape = (TABLES, MOST, seeds)
    if kind == "rows of their own":
        right = rng.binomial(samples, 0.9, shape)
    elif kind == "seeds differ":
        right = rng.binomial(samples, rng.uniform(0.8, 0.95, (TABLES, 1, seeds)), shape)
    else:
        hard = 5 if "five" in kind else samples // 10
        right = (samples - hard) * 9 // 10 + rng.binomial(hard, 0.5, shape)
    return 100 * right / samples


def beyond(scores: np.ndarray, samples: int) -> np.ndarray:
    """Which methods of each table are beyond noise against the first, as a report decides it."""
    one, other = scores[:, 1:], scores[:, :1]
    error = error_of(one, other, 100 / samples)
    return holm_tables(p_of((one - other).mean(-1), error, scores.shape[-1] - 1)) < ALPHA


@pytest.mark.parametrize("kind", KINDS)
def test_equal_methods_are_beyond_noise_in_at_most_five_per_cent_of_tables(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for seeds in (2, 3, 10):
        for samples in (50, 500, 5000):
            scores = equal_methods(kind, samples, seeds, rng)
            for methods in (2, 5, MOST):
                wrong = int(beyond(scores[:, :methods], samples).any(-1).sum())
                assert stats.binomtest(wrong, TABLES, 0.05, alternative="greater").pvalue > 1e-4, (
                    seeds,
                    samples,
                    methods,
                    wrong / TABLES,
                )


def test_an_error_that_is_not_known_proves_nothing():
    found = p_of(np.array([5.0, 0.1, 5.0]), np.array([0.0, 0.1, 1.0]), 3)
    assert found == pytest.approx([1.0, 2 * stats.t.sf(1, 3), 2 * stats.t.sf(5, 3)])
    assert (beyond_noise(0.0499), beyond_noise(0.05), beyond_noise(None), beyond_noise(math.nan)) == (
        True,
        *[False] * 3,
    )


def test_the_simulated_decision_is_the_one_of_reports():
    scores = equal_methods("rows of their own", 50, 3, np.random.default_rng(3))[:200, :5]
    for table, decided in zip(scores, beyond(scores, 50), strict=True):
        found = [paired(list(row), list(table[0]), resolution=2.0).p for row in table[1:]]
        assert [beyond_noise(p) for p in holm(found)] == decided.tolist()


@pytest.mark.parametrize(("kind", "least"), [("one test set, a tenth is hard", 0.95), ("rows of their own", 0.5)])
def test_three_points_are_found_with_five_seeds_and_a_thousand_samples(kind, least):
    """The first of five methods is 3 points behind; how often all four are found to be better."""
    scores = equal_methods(kind, 1000, 5, np.random.default_rng(9))[:, :5]
    scores[:, 0] -= 3
    assert beyond(scores, 1000).mean() > least


def test_the_least_difference_that_seeds_can_show_is_half_of_the_narrowest_interval():
    assert least_shown(2, 1.0) == pytest.approx(12.706 / math.sqrt(2), abs=1e-3)  # nine test samples
    for seeds in (2, 3, 10):
        same = paired([1.0] * seeds, [1.0] * seeds, resolution=0.02)
        assert least_shown(seeds, 0.02) == pytest.approx(same.high)


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


@pytest.mark.second
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


def seeds(*values):
    return dict(enumerate(values))


BASE = (0.80, 0.82, 0.81, 0.79, 0.83)
CLOSE = (0.81, 0.80, 0.815, 0.80, 0.815)
FAR = tuple(value - 0.1 + 0.001 * i for i, value in enumerate(BASE))


def test_only_what_the_test_does_not_tell_apart_is_alike():
    found = best_of({"a": seeds(*FAR), "b": seeds(*BASE), "c": seeds(*CLOSE)}, higher=True)
    assert (found.name, found.alike) == ("b", {"b", "c"})
    pairs = ((FAR, BASE), (FAR, CLOSE), (CLOSE, BASE))
    raw = holm([stats.ttest_rel(one, other).pvalue for one, other in pairs])
    assert found.p == pytest.approx({"a": raw[0], "c": raw[2]})


def test_where_low_is_good():
    assert best_of({"a": seeds(*FAR), "b": seeds(*BASE)}, higher=False).alike == {"a"}


def test_one_seed_proves_nothing():
    assert best_of({"a": seeds(0.9), "b": seeds(0.1)}, higher=True) is None
    assert best_of({"a": seeds(*BASE)}, higher=True) is None
    assert best_of({"a": seeds(*BASE), "b": seeds(float("nan"), 1.0)}, higher=True) is None


def test_seeds_are_paired_where_both_have_them():
    some = best_of({"a": seeds(*BASE), "b": {1: 0.70, 4: 0.71}, "c": {9: 0.1, 10: 0.1}}, higher=True)
    assert some.name == "a"
    assert "c" in some.alike  # without a common seed nobody can tell
    assert "c" not in some.p
    equal = best_of({"a": seeds(*BASE), "b": {1: 0.70, 4: 0.71}}, higher=True, resolution=0.01)
    assert equal.p["b"] == pytest.approx(paired([0.82, 0.83], [0.70, 0.71], resolution=0.01).p)
    assert (some.p["b"], "b" in some.alike) == (1.0, True)  # two equal gaps of 0.12 prove nothing without steps


@pytest.mark.parametrize("methods", [3, 10])
def test_the_best_of_equal_models_is_seldom_ahead_beyond_noise(methods):
    """The same ten seeds choose the best and test it."""
    rng, tries = np.random.default_rng(methods), 60
    wrong = 0
    for _ in range(tries):
        scores = rng.binomial(500, 0.9, (methods, 10)) / 500
        found = best_of({i: seeds(*row) for i, row in enumerate(scores)}, higher=True, resolution=1 / 500)
        wrong += len(found.alike) < methods
    assert stats.binomtest(wrong, tries, 0.05, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize("truth", [0.05, 0.3, 0.5, 0.95])
@pytest.mark.parametrize("count", [10, 40, 200])
def test_the_interval_of_a_share_covers_the_truth(count, truth):
    """Exact coverage, by the binomial distribution: near the nominal 95 % also for few samples and rare errors."""
    right = np.arange(count + 1)
    ends = [share(float(k), count) for k in right]
    inside = np.array([low <= truth <= high for low, high in ends])
    assert stats.binom.pmf(right, count, truth)[inside].sum() > 0.9
    assert all(0 <= low < high <= 1 for low, high in ends)


def test_a_share_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="at least one sample"):
        share(0, 0)
