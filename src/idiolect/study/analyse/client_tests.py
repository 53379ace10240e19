"""Test which clients are better and worse off with a model than with the reference, beyond noise."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from idiolect.metrics.base import Metric
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.analyse import resolution
from idiolect.study.analyse.intervals import ALPHA, error_of, holm, p_of

Side = Sequence[ClientScores]
"""The scores of one named model, a seed each."""


@dataclass(frozen=True)
class Clients:
    """How many clients are better and worse off than with the reference, beyond noise; the names of the worse ones.

    unclear: all others, for which the test samples and seeds show no difference. `told`: of every client 1, -1 or 0
    for these three; None for one without a score.
    """

    better: int
    worse: int
    unclear: int
    hurt: tuple[str, ...]
    told: tuple[int | None, ...]


def clients_among(pairs: Sequence[tuple[Side, Side]], metric: Metric, names: Sequence[str]) -> list[Clients]:
    """Test every client of every pair by itself, with Holm's correction over all clients of all pairs of the table.

    Accuracy: two shares of right answers among a client's n test samples, mean over seeds, as if the two models had
    been tested on samples of their own, which is the cautious side. The variance of sampling is that of Agresti and
    Caffo ("Simple and effective confidence intervals for proportions ...", The American Statistician 2000), one right
    and one wrong answer added to each, so that a client with one test sample proves nothing. To it the variance over
    seeds is added. A few seeds of one client show too little of it by chance, so it is at least the mean over the
    clients, weighted by test samples, and the median of that mean over the pairs. All clients of a seed share one
    training: it has seeds - 1 degrees of freedom, and the sum has Satterthwaite's. With one seed, the claim is about
    the two models at hand. Other metrics: `intervals.paired`, over seeds.

    Args:
        pairs: (measured, reference) of each pair, of the same seeds.
        metric: Which score is compared.
        names: Of the clients.
    """
    tables = [_Table.of(measured, base, metric) for measured, base in pairs]
    noises = [table.noise for table in tables if table.noise is not None]
    typical = float(np.median(noises)) if noises else 0.0
    p_values = [table.p_values(metric, typical) for table in tables]
    adjusted = np.asarray(holm(np.concatenate(p_values).tolist() if p_values else []), np.float64)
    ends = np.cumsum([len(each) for each in p_values])[:-1]
    sure = np.split(adjusted < ALPHA, ends) if tables else []
    return [table.clients(each, metric, names) for table, each in zip(tables, sure, strict=True)]


@dataclass(frozen=True)
class _Table:
    """The clients of one pair that have a value in every seed: their places, values and fewest test samples."""

    size: int
    places: Int[np.ndarray, "n"]
    one: Float[np.ndarray, "seeds n"]
    other: Float[np.ndarray, "seeds n"]
    count: Int[np.ndarray, "n"]

    @classmethod
    def of(cls, measured: Side, base: Side, metric: Metric) -> "_Table":
        one, other = (np.stack([scores.values[metric.name] for scores in side]) for side in (measured, base))
        ours = np.flatnonzero(np.isfinite(one - other).all(axis=0))
        fewest = np.min([scores.count for scores in measured], axis=0)  # seeds may draw splits of their own
        return cls(one.shape[1], ours, one[:, ours], other[:, ours], fewest[ours])

    @property
    def variance(self) -> Float[np.ndarray, "n"]:
        """Each client's variance of the difference over seeds."""
        return (self.one - self.other).var(axis=0, ddof=1)

    @property
    def noise(self) -> float | None:
        """The mean of that over the clients, weighted by test samples; None for a single seed or no client."""
        if len(self.one) < 2 or not self.count.any():
            return None
        return float(np.average(self.variance, weights=self.count))

    def p_values(self, metric: Metric, typical: float) -> Float[np.ndarray, "n"]:
        """Each client's p value before the correction. typical: the noise of the table's pairs."""
        if metric.name == "accuracy":
            return self._of_shares(typical)
        if len(self.one) < 2:
            return np.ones(len(self.places))
        steps = [resolution.step(int(n), metric) for n in self.count]
        errors = [error_of(a, b, step) for a, b, step in zip(self.one.T, self.other.T, steps, strict=True)]
        return p_of((self.one - self.other).mean(axis=0), np.asarray(errors, np.float64), len(self.one) - 1)

    def _of_shares(self, typical: float) -> Float[np.ndarray, "n"]:
        seeds = len(self.one)
        shares = self._shares()
        variance = sum(share * (1 - share) for share in shares) / (self.count + 2)
        freedom = np.full(len(self.count), np.inf)
        if (noise := self.noise) is not None:
            training = np.maximum(self.variance, max(noise, typical)) / seeds
            variance = variance + training
            with np.errstate(divide="ignore"):
                freedom = (seeds - 1) * (variance / training) ** 2
        return p_of(shares[0] - shares[1], np.sqrt(variance), freedom)

    def _shares(self) -> list[Float[np.ndarray, "n"]]:
        """Both shares of right answers, with one right and one wrong answer added."""
        return [(self.count * side.mean(axis=0) + 1) / (self.count + 2) for side in (self.one, self.other)]

    def clients(self, sure: Bool[np.ndarray, "n"], metric: Metric, names: Sequence[str]) -> Clients:
        """Count and name the clients. sure: whose difference is beyond noise."""
        gap = (self.one - self.other).mean(axis=0)
        sign = gap if metric.higher else -gap
        worse: list[int] = self.places[sure & (sign < 0)].tolist()
        better = int((sure & (sign > 0)).sum())
        hurt = tuple(names[i] if i < len(names) else str(i) for i in worse)
        told: list[int | None] = [None] * self.size
        for client, known, direction in zip(self.places.tolist(), sure.tolist(), sign.tolist(), strict=True):
            told[client] = int(np.sign(direction)) if known else 0
        return Clients(better, len(worse), len(self.places) - better - len(worse), hurt, tuple(told))
