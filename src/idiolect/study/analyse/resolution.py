"""By how much one test sample changes a score over all samples, or a mean over clients: the steps of its values.

Steps are in the metric's own units, 0 for a metric without steps, and NaN where samples of a rare class count more:
how many samples a class has is not known here.
"""

import math
from collections.abc import Iterable

from idiolect.metrics.base import Metric
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.store.summary import WORST_SHARE


def of_samples(scores: Iterable[ClientScores], metric: Metric) -> float:
    """The step of the metric over all test samples: the largest among these runs."""
    return max((step(int(each.count.sum()), metric) for each in scores), default=step(0, metric))


def step(samples: int, metric: Metric) -> float:
    """The step of the metric on so many test samples."""
    return _of(metric, 1 / samples if samples else math.nan)


def of_clients(scores: Iterable[ClientScores], metric: Metric, share: float = 1.0) -> float:
    """The step of a mean over the clients, or over a share of them (the worst): one sample of the smallest client.

    Every client counts once, so that one sample of a client with n counts 1 / (clients n).
    """
    steps: list[float] = []
    for each in scores:
        counts = each.count[each.count > 0]
        if len(counts):
            steps.append(1 / (math.ceil(share * len(counts)) * int(counts.min())))
    return _of(metric, max(steps, default=math.nan))


def of_worst(scores: Iterable[ClientScores], metric: Metric) -> float:
    """The step of the mean over the worst tenth of the clients."""
    return of_clients(scores, metric, WORST_SHARE)


def _of(metric: Metric, value: float) -> float:
    if metric.steps == "none":
        return 0.0
    return value if metric.steps == "samples" else math.nan
