"""The outcomes of a comparison for one method and model: a table line, a curve over rounds, a published gap."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from idiolect.metrics.registry import ALWAYS, METRICS
from idiolect.study.published import Gap, Published
from idiolect.study.summary import OverSeeds

Verdict = Literal["reproduced", "differs", "no published value", "not run", "diverged", "not measured"]


@dataclass(frozen=True)
class Line:
    """One named model of one method in one cell, on test data, over seeds.

    metric: the name of the compared metric, of which these five are values: pooled: over all samples; mean, spread:
    mean and standard deviation over clients; worst10: mean over the worst tenth of the clients; worst: the worst
    client. loss: mean over samples. metrics: metric name -> value over all samples, for every measured metric; NaN if
    a seed has none. hurt_local, hurt_global: fraction of clients worse off than with Local, and than with the plain
    global model (FedAvg's if it was run, else this method's own); None without that model. rounds: the rounds whose
    models are shown, one a seed. seconds: training time of a run, without compilation. failed: seeds that diverged.
    """

    cell: str
    method: str
    model: str
    metric: str
    pooled: OverSeeds
    mean: OverSeeds
    spread: OverSeeds
    worst10: OverSeeds
    worst: OverSeeds
    loss: OverSeeds
    metrics: Mapping[str, OverSeeds]
    hurt_local: OverSeeds | None
    hurt_global: OverSeeds | None
    rounds: tuple[int, ...]
    seconds: OverSeeds
    published: Published | None
    failed: int

    @property
    def published_metric(self) -> str:
        """The name of the published value's metric; the task's standard metric if it names none."""
        named = "" if self.published is None else self.published.metric
        return named or ALWAYS[METRICS[self.metric].task][0]

    @property
    def difference(self) -> float | None:
        """Measured minus published, in the published value's units (per cent for accuracy); None without either."""
        name, published = self.published_metric, self.published
        if published is None or name not in self.metrics or math.isnan(self.metrics[name].mean):
            return None
        return METRICS[name].unit * self.metrics[name].mean - published.value

    @property
    def verdict(self) -> Verdict:
        """Whether the mean over seeds is within the published value's tolerance, or why that is unknown."""
        if self.pooled.seeds == 0:
            return "diverged" if self.failed else "not run"
        if self.published is None:
            return "no published value"
        if self.difference is None:
            return "not measured"
        return "reproduced" if abs(self.difference) <= self.published.within else "differs"


@dataclass(frozen=True)
class Curve:
    """One named model's curve over rounds: mean and standard deviation over seeds. Arrays are (rounds,).

    The standard deviations are NaN for a single seed.
    """

    cell: str
    method: str
    model: str
    split: str
    rounds: np.ndarray
    score: np.ndarray
    score_std: np.ndarray
    loss: np.ndarray
    loss_std: np.ndarray


@dataclass(frozen=True)
class GapLine:
    """A published gap and the measured one, both in percentage points; seeds are paired."""

    gap: Gap
    measured: OverSeeds

    @property
    def verdict(self) -> Verdict:
        """Whether the mean gap is within the published value's tolerance."""
        if self.measured.seeds == 0:
            return "not run"
        return "reproduced" if abs(self.measured.mean - self.gap.value) <= self.gap.within else "differs"
