"""Summaries of the clients' scores, over clients and over seeds."""

import math
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass

import numpy as np
from jaxtyping import Float

from idiolect.metrics.base import Metric
from idiolect.runtime.evaluate import ClientScores

WORST_SHARE = 0.1


@dataclass(frozen=True)
class Summary:
    """One metric of one model on one split, over all clients that have a value.

    pooled: over all samples of all clients; mean, std (dividing by the number of clients), median: over clients,
    each counting once; worst: the worst client; worst10: mean over the worst tenth of the clients, rounded up;
    deciles: nine values, ascending; loss: mean over samples; clients: how many have a value; samples: of all clients.
    The metric decides whether low or high values are the worst. NaN if no client has a value.
    """

    pooled: float
    mean: float
    std: float
    median: float
    worst: float
    worst10: float
    deciles: tuple[float, ...]
    loss: float
    clients: int
    samples: int

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self)


def summarise(scores: ClientScores, metric: Metric) -> Summary:
    """Summarise one metric over the clients that have a value."""
    values, nonempty = scores.values[metric.name], scores.count > 0
    values = values[np.isfinite(values)]
    loss = float(np.average(scores.loss[nonempty], weights=scores.count[nonempty])) if nonempty.any() else math.nan
    pooled, samples = scores.pooled[metric.name], int(scores.count.sum())
    if len(values) == 0:
        nan = math.nan
        return Summary(pooled, nan, nan, nan, nan, nan, (nan,) * 9, loss, 0, samples)
    ordered = np.sort(values) if metric.higher else np.sort(values)[::-1]
    worst_count = math.ceil(WORST_SHARE * len(values))
    return Summary(
        pooled=pooled,
        mean=float(values.mean()),
        std=float(values.std()),
        median=float(np.median(values)),
        worst=float(ordered[0]),
        worst10=float(ordered[:worst_count].mean()),
        deciles=tuple(float(q) for q in np.quantile(values, np.linspace(0.1, 0.9, 9))),
        loss=loss,
        clients=len(values),
        samples=samples,
    )


def hurt_fraction(
    values: Float[np.ndarray, "clients"], reference: Float[np.ndarray, "clients"], metric: Metric
) -> float:
    """The fraction of clients strictly worse off with this model than with the reference model.

    Clients without a value (NaN) of either model do not count; NaN if none is left.
    """
    both = np.isfinite(values) & np.isfinite(reference)
    return float(metric.worse(values[both], reference[both]).mean()) if both.any() else math.nan


@dataclass(frozen=True)
class OverSeeds:
    """Mean, sample standard deviation and the 95 % confidence half-width (Student's t) over seeds.

    std and half_width are NaN for a single seed. NaN equals NaN here, so that records with equal scores are equal
    (Python before 3.13 takes the same NaN object for equal, later ones do not).
    """

    mean: float
    std: float
    half_width: float
    seeds: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OverSeeds) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[float | None, ...]:
        return tuple(None if math.isnan(value) else value for value in astuple(self))


def half_width(std: float, seeds: int, confidence: float = 0.95) -> float:
    """Half of the confidence interval of a mean over seeds: t std / sqrt(seeds), t of Student with seeds - 1.

    std: the sample standard deviation over seeds. NaN for fewer than two seeds.
    """
    if seeds < 2:
        return math.nan
    from scipy import stats  # here: it loads slowly, and most commands never need it

    return float(stats.t.ppf(0.5 + confidence / 2, seeds - 1)) * std / math.sqrt(seeds)


def half_widths(values: Float[np.ndarray, "seeds ..."]) -> Float[np.ndarray, "..."]:
    """Half of the 95 % interval of every number's mean over seeds; NaN for a single seed."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(half_width(1.0, len(values)) * values.std(axis=0, ddof=1))


def over_seeds(values: Sequence[float], confidence: float = 0.95) -> OverSeeds:
    """Summarise one number over seeds; NaN and 0 seeds if there are none."""
    array = np.asarray(values, dtype=np.float64)
    n = len(array)
    if n < 2:
        return OverSeeds(float(array.mean()) if n else math.nan, math.nan, math.nan, n)
    std = float(array.std(ddof=1))
    return OverSeeds(float(array.mean()), std, half_width(std, n, confidence), n)
