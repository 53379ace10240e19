"""Hints on runs at work: diverging, not learning, behind local training. They are shown, and nothing else reads them.

Whether a run diverges or learns is read from its training samples only. The lead of Local is read from the test
scores that the display shows anyway; no choice, no stop and no record depends on it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from idiolect.metrics.base import Metric
from idiolect.study.run.following import Followed, Point

Kind = Literal["diverging", "not learning", "local ahead"]
RISES = 3
"""Evaluations in a row in which the training loss must rise, or Local must be ahead."""
GROWTH = 1.5
"""By what the loss must grow at each of them, where it is not yet above where it began."""
ABOVE = 1.1
"""Times the loss at the start: above that a rising loss is worse than no training."""
ERRORS = 2.0
"""Standard errors by which Local must be ahead where a score is a share of samples."""
SHARE = 0.01
"""Of Local's score by which it must be ahead where the score is no share of samples."""


@dataclass(frozen=True)
class Hint:
    """One hint on one run: its kind, and a sentence."""

    run: str
    kind: Kind
    text: str


def hints(run: Followed, local: Followed | None) -> list[Hint]:
    """The hints on a run. local: the run of Local in the same cell with the same seed, if there is one."""
    if run.compared is None or run.status == "diverged":
        return []
    told: list[tuple[Kind, str | None]] = [
        ("diverging", diverging(run)),
        ("not learning", not_learning(run, run.compared)),
        ("local ahead", None if local is None else local_ahead(run, local, run.compared)),
    ]
    if told[0][1]:  # why it does not learn is known
        told = told[:1]
    return [Hint(run.id, kind, text) for kind, text in told if text]


def all_hints(runs: Sequence[Followed]) -> dict[str, list[Hint]]:
    """Run id -> its hints, if it has any."""
    local = {(run.cell, run.seed): run for run in runs if run.name == "local"}
    found = {run.id: hints(run, local.get((run.cell, run.seed))) for run in runs}
    return {name: told for name, told in found.items() if told}


def diverging(run: Followed) -> str | None:
    """Whether the training loss of a model rises without end.

    It rose at each of the last evaluations, and is above that of the start, or grew by half at each of them.
    """
    for model, course in run.courses.get("train", {}).items():
        losses = [point.loss for point in course]
        last = losses[-RISES - 1 :]
        if len(last) <= RISES or not all(math.isfinite(loss) for loss in losses):
            continue
        rises = all(after > before for before, after in pairwise(last))
        grows = all(after > GROWTH * before > 0 for before, after in pairwise(last))
        if rises and (grows or losses[-1] > ABOVE * losses[0] > 0):
            return (
                f"diverging: the training loss of '{model}' rose from {_short(last[0])} to {_short(last[-1])} in "
                f"{course[-1].round - course[-RISES - 1].round} rounds; lower the learning rates"
            )
    return None


def not_learning(run: Followed, metric: Metric) -> str | None:
    """Whether no model is better on the training samples than untrained, or than one answer for all, at a third.

    A method with one model that has learnt learns; one score after another counts, so that no single bad one counts.
    """
    courses = [course for course in run.courses.get("train", {}).values() if course]
    if not courses or any(course[0].round != 0 or 3 * course[-1].round < run.rounds for course in courses):
        return None
    trained = [[point.score for point in course[1:]][-RISES:] for course in courses]
    if any(len(scores) < 2 or any(math.isnan(score) for score in scores) for scores in trained):
        return None
    best, untrained = [scores[metric.best(scores)] for scores in trained], [course[0].score for course in courses]
    if not any(metric.better(now, before) for now, before in zip(best, untrained, strict=True)):
        return f"not learning: no better on its training samples than before round 1 ({_value(untrained[0], metric)})"
    if run.constant is not None and not any(metric.better(now, run.constant) for now in best):
        what = "the most common label" if metric.higher else "the labels' mean"
        return f"not learning: no better on its training samples than always {what} ({_value(run.constant, metric)})"
    return None


def local_ahead(run: Followed, local: Followed, metric: Metric) -> str | None:
    """By what local training is ahead of every model of a method, compared in the same rounds.

    It must be ahead at each of the last evaluations of both, and at the last beyond noise.
    """
    if run.id == local.id or run.metric != local.metric:
        return None
    alone = {point.round: point for point in local.course("test", "local") if point.round > 0}
    courses = [{point.round: point for point in course} for course in run.courses.get("test", {}).values()]
    rounds = sorted(alone.keys() & set.intersection(*({*course} for course in courses))) if courses else []
    if len(rounds) < RISES:
        return None
    gaps: list[tuple[float, Point]] = []
    for round in rounds[-RISES:]:
        best = _best_point([course[round] for course in courses], metric)
        gap = alone[round].score - best.score
        gaps.append((gap if metric.higher else -gap, best))
    last, best = gaps[-1]
    if not all(gap > 0 for gap, _ in gaps) or last <= _noise(alone[rounds[-1]], best, metric):
        return None
    return f"Local ahead by {_size(last, metric)} at round {rounds[-1]} (test {metric.column})"


def _noise(one: Point, other: Point, metric: Metric) -> float:
    """What a gap must exceed: of shares of samples their standard errors, else a share of the score."""
    if metric.name != "accuracy":
        return SHARE * abs(one.score)
    variances = [point.score * (1 - point.score) / max(point.samples, 1) for point in (one, other)]
    return ERRORS * math.sqrt(max(sum(variances), 0.0))


def _best_point(points: Sequence[Point], metric: Metric) -> Point:
    return points[metric.best([point.score for point in points])]


def _value(score: float, metric: Metric) -> str:
    return f"{metric.column} {score * metric.unit:.4g}{' %' if metric.percent else ''}"


def _size(gap: float, metric: Metric) -> str:
    return f"{gap * metric.unit:.3g}{' points' if metric.percent else ''}"


def _short(value: float) -> str:
    return f"{value:.3g}"
