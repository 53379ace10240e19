"""Confidence intervals of differences, and tests of several differences together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from idiolect.core.errors import require

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Difference:
    """A difference of means: mean, the ends of its confidence interval, the p value of "it is 0", pairs or seeds."""

    mean: float
    low: float
    high: float
    p: float
    count: int

    @property
    def includes_zero(self) -> bool:
        """Whether the interval holds 0, its ends included."""
        return self.low <= 0 <= self.high

    def within(self, margin: float) -> bool:
        """Whether the whole interval lies in [-margin, margin]."""
        return -margin <= self.low and self.high <= margin


def paired(one: Sequence[float], other: Sequence[float], confidence: float = CONFIDENCE) -> Difference:
    """The mean of one_i - other_i with Student's interval, and the paired t test's p value.

    Raises `ConfigError` for fewer than two pairs, of which nothing can be said. Equal differences have an interval
    without width, and p = 0, or 1 if all are 0.
    """
    require(len(one) == len(other), f"pairs need as many numbers on both sides, not {len(one)} and {len(other)}")
    require(len(one) >= 2, f"a paired test needs at least two pairs (seeds), there is {len(one)}")
    gaps = np.asarray(one, np.float64) - np.asarray(other, np.float64)
    mean, error = float(gaps.mean()), float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
    return _of(mean, error, len(gaps) - 1, len(gaps), confidence)


def resampled(gaps: Sequence[float], ratio: float, confidence: float = CONFIDENCE) -> Difference:
    """The mean of gaps measured on S random divisions of the same rows, with the corrected resampled t interval.

    error^2 = (1 / S + n_test / n_train) var(gaps), S - 1 degrees of freedom. Divisions overlap in training rows, so
    that their gaps are correlated; var / S alone gives intervals far too narrow. ratio: n_test / n_train.
    Source: Nadeau, Bengio, "Inference for the generalization error", Machine Learning 2003, section 3.2.

    Raises `ConfigError` for fewer than two gaps.
    """
    require(len(gaps) >= 2, f"an interval needs at least two divisions, there is {len(gaps)}")
    values = np.asarray(gaps, np.float64)
    error = float(values.std(ddof=1)) * math.sqrt(1 / len(values) + ratio)
    return _of(float(values.mean()), error, len(values) - 1, len(values), confidence)


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

    Raises `ConfigError` for a single seed, whose deviation is not known.
    """
    require(seeds >= 2, f"an interval needs at least two seeds, there is {seeds}")
    own, theirs = std**2 / seeds, (value_std or 0.0) ** 2 / runs
    spread = own**2 / (seeds - 1) + (theirs**2 / (runs - 1) if runs > 1 else 0.0)
    freedom = (own + theirs) ** 2 / spread if spread else math.inf
    return _of(mean - value, math.sqrt(own + theirs), freedom, seeds, confidence)


def _of(mean: float, error: float, freedom: float, count: int, confidence: float) -> Difference:
    if error == 0:
        return Difference(mean, mean, mean, 0.0 if mean else 1.0, count)
    from scipy import stats  # here: it loads slowly, and most commands never need it

    half = float(stats.t.ppf(0.5 + confidence / 2, freedom)) * error
    return Difference(mean, mean - half, mean + half, 2 * float(stats.t.sf(abs(mean) / error, freedom)), count)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given: the chance of any false rejection among all stays below alpha.

    p'_(i) = max_{j <= i} min(1, (m - j + 1) p_(j)) for ascending p_(1) .. p_(m). Source: Holm, "A simple sequentially
    rejective multiple test procedure", Scandinavian Journal of Statistics 1979.
    """
    order = np.argsort(p_values, kind="stable")
    scaled = np.asarray(p_values, np.float64)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(scaled)) if len(order) else scaled
    return adjusted.tolist()
