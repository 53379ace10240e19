"""The outcomes for one method and model: a table line, a curve, a gap, and a verdict on a published value."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np

from idiolect.metrics.registry import ALWAYS, METRICS
from idiolect.study.analyse.intervals import CONFIDENCE, Difference, from_published
from idiolect.study.spec.published import LOSS, Gap, Published, published_metric
from idiolect.study.store.summary import OverSeeds

FEDAVG, OWN = "FedAvg", "own global"
"""The method that gives the global model with which a client is compared: FedAvg's, or the method's own."""


Verdict = Literal[
    "agrees", "consistent, wide", "close", "differs", "other data", "not measured", "not run", "diverged"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

RULE = """\
**agrees**: the whole 95 % interval of measured minus published lies within the margin. **consistent, wide**: the
interval includes 0 but reaches beyond the margin, so no difference is shown, and one that matters is not excluded.
**close**: the difference is within the margin, but the interval excludes 0 and reaches beyond it, or there is no
interval (a single seed). **differs**: none of these; "explained" where a run that is named shows why. **other data**:
not those of the paper, so nothing is reproduced, whatever the difference. The interval is Welch's, from our seeds and
what the paper gives after ±, a standard deviation or half of a confidence interval; the margin, a difference that
does not matter, is given under each table."""


def interval_of(measured: OverSeeds, published: Published) -> Difference | None:
    """Measured minus published with its interval; None for a single seed. measured: in the published units.

    A published half-width h of a 95 % interval has the standard error h / 1.96, whatever it is the mean of.
    """
    if measured.seeds < 2 or math.isnan(measured.std):
        return None
    std, runs = published.std, published.runs
    if published.half_width is not None:
        std, runs = published.half_width / NormalDist().inv_cdf(0.5 + CONFIDENCE / 2), 1
    return from_published(measured.mean, measured.std, measured.seeds, published.value, std, runs)


def verdict_of(measured: OverSeeds, published: Published) -> Verdict:
    """The verdict of `RULE` on at least one seed. measured: in the published units."""
    if published.other_data:
        return "other data"
    if math.isnan(measured.mean):
        return "not measured"
    interval, near = interval_of(measured, published), abs(measured.mean - published.value) <= published.within
    if interval is not None and interval.within(published.within):
        return "agrees"
    if interval is not None and interval.includes_zero:
        return "consistent, wide"
    return "close" if near else "differs"


def in_words(verdict: Verdict, published: Published) -> str:
    """The verdict as a table shows it: a difference is explained or not."""
    if verdict != "differs":
        return verdict
    return "differs, explained" if published.explained else "differs, unexplained"


def sentence(verdicts: Sequence[Verdict], explained: int) -> str:
    """How many published values have which verdict; empty for none. explained: of those that differ."""
    if not verdicts:
        return ""
    many = {"agrees": "agree", "close": "are close", "differs": "differ", "other data": "rest on other data"}
    many |= {"consistent, wide": "are consistent with a wide interval"}
    single = {"close": "is close", "other data": "rests on other data"}
    single |= {"consistent, wide": "is consistent with a wide interval"}
    parts: list[str] = []
    for verdict in VERDICTS:
        count = verdicts.count(verdict)
        if count or verdict in ("agrees", "close", "differs"):
            more = f" ({explained} explained)" if verdict == "differs" and explained else ""
            parts.append(f"{count} {(single if count == 1 else many).get(verdict, verdict)}{more}")
    return f"{len(verdicts)} published value{'s' if len(verdicts) > 1 else ''}: {', '.join(parts)}."


@dataclass(frozen=True)
class Line:
    """One named model of one method in one cell, on test data, over seeds.

    metric: the name of the compared metric, of which these five are values: pooled: over all samples; mean, spread:
    mean and standard deviation over clients; worst10: mean over the worst tenth of the clients; worst: the worst
    client. loss: mean over samples. metrics: metric name -> value over all samples, for every measured metric; NaN if
    a seed has none. hurt_local, hurt_global: fraction of clients worse off than with Local, and than with the plain
    global model (FedAvg's if it was run, else this method's own); None without that model. global_of: which that was,
    `FEDAVG`, `OWN`, or both, over the seeds. rounds: the rounds of the models that are shown, one per seed. seconds:
    training time of a run, without compilation. failed: seeds that diverged.
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
    global_of: tuple[str, ...] = ()

    @property
    def published_metric(self) -> str:
        """The name of the published value's metric; the task's standard metric if it names none."""
        named = "" if self.published is None else self.published.metric
        return named or ALWAYS[METRICS[self.metric].task][0]

    @property
    def compared(self) -> OverSeeds | None:
        """What a published value is compared with, over seeds, in its units (per cent for accuracy); None without."""
        name = self.published_metric
        measured = self.loss if name == LOSS.name else self.metrics.get(name)
        if self.published is None or measured is None or math.isnan(measured.mean):
            return None
        unit = published_metric(name).unit
        return OverSeeds(unit * measured.mean, unit * measured.std, unit * measured.half_width, measured.seeds)

    @property
    def difference(self) -> float | None:
        """Measured minus published, in the published value's units; None without either."""
        return None if self.published is None or self.compared is None else self.compared.mean - self.published.value

    @property
    def interval(self) -> Difference | None:
        """The same with its 95 % interval; None without a value, and for a single seed."""
        return None if self.published is None or self.compared is None else interval_of(self.compared, self.published)

    @property
    def verdict(self) -> Verdict | None:
        """Whether it agrees with the published value, by `verdict.RULE`; None where there is none."""
        if self.published is None:
            return None
        if self.pooled.seeds == 0:
            return "diverged" if self.failed else "not run"
        return "not measured" if self.compared is None else verdict_of(self.compared, self.published)


@dataclass(frozen=True)
class Curve:
    """One named model's curve over rounds: mean over seeds and half of its 95 % interval. Arrays are (rounds,).

    score_ci95, loss_ci95: half of the interval's width (Student's t), NaN for a single seed.
    """

    cell: str
    method: str
    model: str
    split: str
    rounds: np.ndarray
    score: np.ndarray
    score_ci95: np.ndarray
    loss: np.ndarray
    loss_ci95: np.ndarray


@dataclass(frozen=True)
class GapLine:
    """A published gap and the measured one, both in percentage points; seeds are paired."""

    gap: Gap
    measured: OverSeeds

    @property
    def published(self) -> Published:
        """The gap as a published value, which has no deviation."""
        return Published(model="", value=self.gap.value, within=self.gap.within, explained=self.gap.explained)

    @property
    def difference(self) -> float | None:
        """Measured minus published, in points."""
        return self.measured.mean - self.gap.value if self.measured.seeds else None

    @property
    def interval(self) -> Difference | None:
        """The same with its 95 % interval; None for a single seed."""
        return interval_of(self.measured, self.published)

    @property
    def verdict(self) -> Verdict:
        """Whether the gap agrees with the published one, by `verdict.RULE`."""
        return verdict_of(self.measured, self.published) if self.measured.seeds else "not run"
