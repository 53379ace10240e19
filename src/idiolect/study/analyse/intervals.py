"""Confidence intervals of differences, tests of several differences together, and the best of several models."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Generic, TypeVar

import numpy as np
from jaxtyping import Float

from idiolect.core.errors import require

CONFIDENCE = 0.95
ALPHA = 0.05
"""A difference is called "beyond noise" if its p value, corrected for all tests of its table, is below this."""
ROUNDING = 2.0**-22
"""Scores that differ by less than this share of their size are equal: two units in the last place of float32."""
FEWEST = 5
"""Seeds below which a score whose steps are not known has no interval."""
EQUAL, UNKNOWN = "equal in every seed", f"fewer than {FEWEST} seeds, and rare classes count in large steps"
"""Why a difference has no interval."""


@dataclass(frozen=True)
class Difference:
    """A difference of means: mean, the ends of its confidence interval, the p value of "it is 0", pairs or seeds.

    low, high, p: None where the numbers show no spread, so that the error is not known. why: the reason, in words.
    """

    mean: float
    low: float | None
    high: float | None
    p: float | None
    count: int
    why: str = ""

    @property
    def includes_zero(self) -> bool:
        """Whether there is an interval and it contains 0, its ends included."""
        return self.low is not None and self.high is not None and self.low <= 0 <= self.high

    def within(self, margin: float) -> bool:
        """Whether there is an interval and all of it is in [-margin, margin]."""
        return self.low is not None and self.high is not None and -margin <= self.low and self.high <= margin

    def above(self, value: float) -> bool:
        """Whether there is an interval and all of it lies above a value."""
        return self.low is not None and self.low > value

    def below(self, value: float) -> bool:
        """Whether there is an interval and all of it lies below a value."""
        return self.high is not None and self.high < value


def paired(
    one: Sequence[float], other: Sequence[float], confidence: float = CONFIDENCE, *, resolution: float = 0.0
) -> Difference:
    """Compute the mean of one_i - other_i with Student's interval, and the p value of the paired t test.

    Every paired test of idiolect is this one; see `error_of` for the error.

    Args:
        one: Scores, one per seed.
        other: Scores of the same seeds.
        confidence: Of the interval.
        resolution: By how much one test sample changes a score, in the scores' units; 0 for a score without such
            steps, NaN where they are not known. See `study.resolution`.

    Raises:
        ConfigError: For fewer than two pairs, which show no spread.
    """
    require(len(one) == len(other), f"pairs need as many numbers on both sides, not {len(one)} and {len(other)}")
    require(len(one) >= 2, f"a paired test needs at least two pairs (seeds), there is {len(one)}")
    sides = np.asarray(one, np.float64), np.asarray(other, np.float64)
    error = float(error_of(*sides, resolution))
    why = UNKNOWN if math.isnan(resolution) and len(one) < FEWEST else EQUAL
    return _of(float((sides[0] - sides[1]).mean()), error, len(one) - 1, len(one), confidence, why)


def error_of(
    one: Float[np.ndarray, "... seeds"], other: Float[np.ndarray, "... seeds"], resolution: float
) -> Float[np.ndarray, "..."]:
    """The standard error of the mean of one - other: max(s, resolution) / sqrt(seeds); 0 if it is not known.

    s is the sample standard deviation. Scores go in steps of a test sample, so that a few seeds can have equal
    differences by chance: s is then 0, or far too small, whatever the true spread is. So s counts as at least one
    step. Where the steps are not known (NaN), fewer than `FEWEST` seeds have no error. Without steps (0), differences
    that are equal within float32's rounding have none.
    """
    gaps = one - other
    if math.isnan(resolution):
        if gaps.shape[-1] < FEWEST:
            return np.zeros(gaps.shape[:-1])
        resolution = 0.0
    spread = gaps.std(axis=-1, ddof=1)
    size = np.maximum(np.abs(one).max(axis=-1), np.abs(other).max(axis=-1))
    spread = np.where(spread <= ROUNDING * size, 0.0, spread)
    return np.asarray(np.maximum(spread, resolution) / math.sqrt(gaps.shape[-1]))


def p_of(
    mean: Float[np.ndarray, "..."], error: Float[np.ndarray, "..."], freedom: Float[np.ndarray, "..."] | float
) -> Float[np.ndarray, "..."]:
    """The two-sided p values of Student's t = mean / error; 1 where the error is 0, that is, not known."""
    from scipy import stats  # here: it loads slowly, and most commands never need it

    known = error > 0
    t = np.where(known, np.abs(mean), 0.0) / np.where(known, error, 1.0)
    return np.asarray(2 * stats.t.sf(t, freedom))


def least_shown(seeds: int, resolution: float, confidence: float = CONFIDENCE) -> float:
    """The smallest difference that so many seeds can show: half of the narrowest interval that `paired` gives."""
    from scipy import stats  # here: it loads slowly, and most commands never need it

    return float(stats.t.ppf(0.5 + confidence / 2, seeds - 1)) * resolution / math.sqrt(seeds)


def beyond_noise(p: float | None) -> bool:
    """Whether a corrected p value shows a difference; one that is missing (None or NaN) shows none."""
    return p is not None and p < ALPHA


def resampled(gaps: Sequence[float], ratio: float, confidence: float = CONFIDENCE) -> Difference:
    """The mean of gaps measured on S random divisions of the same rows, with the corrected resampled t interval.

    error^2 = (1 / S + n_test / n_train) var(gaps), S - 1 degrees of freedom. Divisions overlap in training rows, so
    that their gaps are correlated; var / S by itself gives intervals far too narrow. ratio: n_test / n_train.
    Source: Nadeau, Bengio, "Inference for the generalization error", Machine Learning 2003, section 3.2.

    Equal gaps have no interval. Raises `ConfigError` for fewer than two gaps.
    """
    require(len(gaps) >= 2, f"an interval needs at least two divisions, there is {len(gaps)}")
    values = np.asarray(gaps, np.float64)
    deviation = float(values.std(ddof=1))
    deviation = 0.0 if deviation <= 1e-12 * float(np.abs(values).max()) else deviation
    error = deviation * math.sqrt(1 / len(values) + ratio)
    return _of(float(values.mean()), error, len(values) - 1, len(values), confidence, "equal in every division")


def from_published(
    mean: float,
    std: float,
    seeds: int,
    value: float,
    value_std: float | None = None,
    runs: int = 1,
    confidence: float = CONFIDENCE,
) -> Difference:
    """Our mean over seeds minus a published value, with Welch's interval.

    error^2 = std^2 / seeds + value_std^2 / runs. value_std: the published standard deviation, None if there is none:
    then the value is taken as exact. runs: of how many runs the value is the mean; with 1, where the paper does not
    say, the deviation is that of the value itself. The degrees of freedom are Welch's (Welch, "The generalization of
    Student's problem", Biometrika 1947, eq. 28); a deviation of a single run counts as known.

    Equal scores of all seeds and no published deviation have no interval. Raises `ConfigError` for a single seed,
    whose deviation is not known.
    """
    require(seeds >= 2, f"an interval needs at least two seeds, there is {seeds}")
    own, theirs = std**2 / seeds, (value_std or 0.0) ** 2 / runs
    spread = own**2 / (seeds - 1) + (theirs**2 / (runs - 1) if runs > 1 else 0.0)
    freedom = (own + theirs) ** 2 / spread if spread else math.inf
    return _of(mean - value, math.sqrt(own + theirs), freedom, seeds, confidence)


def _of(mean: float, error: float, freedom: float, count: int, confidence: float, why: str = EQUAL) -> Difference:
    if error == 0:
        return Difference(mean, None, None, None, count, why)
    from scipy import stats  # here: it loads slowly, and most commands never need it

    half = float(stats.t.ppf(0.5 + confidence / 2, freedom)) * error
    p = float(p_of(np.asarray(mean), np.asarray(error), freedom))
    return Difference(mean, mean - half, mean + half, p, count)


def share(right: float, count: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The ends of the interval of a share of right answers among so many test samples.

    Two right and two wrong answers are added: p = (right + 2) / (count + 4), and the variance is
    p (1 - p) / (count + 4). Source: Agresti and Coull, "Approximate is better than 'exact' for interval estimation of
    binomial proportions", The American Statistician 1998, section 3. For a difference of two shares, one is added to
    each, as `client_tests` does.

    Raises `ConfigError` for no sample.
    """
    require(count >= 1, "a share needs at least one sample")
    from scipy import stats  # here: it loads slowly, and most commands never need it

    middle = (right + 2) / (count + 4)
    half = float(stats.norm.ppf(0.5 + confidence / 2)) * math.sqrt(middle * (1 - middle) / (count + 4))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given: the chance of any false rejection among all stays below alpha.

    p'_(i) = max_{j <= i} min(1, (m - j + 1) p_(j)) for ascending p_(1) .. p_(m). Source: Holm, "A simple sequentially
    rejective multiple test procedure", Scandinavian Journal of Statistics 1979.
    """
    return holm_tables(np.asarray(p_values, np.float64)).tolist()


def holm_tables(p_values: Float[np.ndarray, "... tests"]) -> Float[np.ndarray, "... tests"]:
    """Holm's adjusted p values of many tables at once, each corrected by itself."""
    order = np.argsort(p_values, axis=-1, kind="stable")
    scaled = np.take_along_axis(p_values, order, -1) * np.arange(p_values.shape[-1], 0, -1)
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, np.minimum(1.0, np.maximum.accumulate(scaled, axis=-1)), -1)
    return adjusted


Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Best(Generic[Name]):
    """The best by its mean, and all that do not differ beyond noise; p: the adjusted p value of every other."""

    name: Name
    alike: frozenset[Name]
    p: Mapping[Name, float]


def best_of(
    values: Mapping[Name, Mapping[int, float]], *, higher: bool, resolution: float = 0.0
) -> Best[Name] | None:
    """Find the best mean over seeds, and test every other against it: paired over their common seeds, Holm.

    The same seeds choose the best and test it: the best of many equal models is ahead of the others by chance. So
    Holm's correction is over all pairs of models, not only over those with the best.

    Args:
        values: Name -> seed -> value; one with fewer than two seeds, or with a NaN, does not take part.
        higher: Whether higher is better.
        resolution: By how much one test sample changes a value, see `intervals.paired`.

    Returns:
        None if no two take part: then nothing is known. One without two seeds in common with the best is not
        distinguished from it.
    """
    whole = {name: seeds for name, seeds in values.items() if len(seeds) > 1 and not _has_nan(seeds)}
    if len(whole) < 2:
        return None
    means = {name: math.fsum(seeds.values()) / len(seeds) for name, seeds in whole.items()}
    top = max(means, key=lambda name: means[name] if higher else -means[name])
    adjusted = _of_pairs(whole, resolution)
    p = {name: adjusted[frozenset((name, top))] for name in whole if frozenset((name, top)) in adjusted}
    alike = frozenset(name for name in whole if name == top or not beyond_noise(p.get(name)))
    return Best(top, alike, p)


def _of_pairs(values: Mapping[Name, Mapping[int, float]], resolution: float) -> dict[frozenset[Name], float]:
    """Both names -> Holm's adjusted p value, of all pairs with two seeds in common."""
    tested: dict[frozenset[Name], float] = {}
    for one, other in combinations(values, 2):
        common = sorted(values[one].keys() & values[other].keys())
        if len(common) > 1:
            sides = [[values[name][seed] for seed in common] for name in (one, other)]
            p = paired(sides[0], sides[1], resolution=resolution).p
            tested[frozenset((one, other))] = 1.0 if p is None else p
    return dict(zip(tested, holm([*tested.values()]), strict=True))


def _has_nan(seeds: Mapping[int, float]) -> bool:
    return any(math.isnan(value) for value in seeds.values())
