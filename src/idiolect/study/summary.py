"""Summaries of per-client scores: one client's number never hides behind an average."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from idiolect.data.federated import TaskKind
from idiolect.runtime.evaluate import ClientScores

WORST_SHARE = 0.1


def higher_is_better(task: TaskKind) -> bool:
    """Accuracy is to be high, mean squared error low."""
    return task == "classification"


def metric_name(task: TaskKind) -> str:
    """The name of the score: accuracy, or mse."""
    return "accuracy" if task == "classification" else "mse"


def shown_unit(task: TaskKind) -> int:
    """100 for accuracy, which people read in per cent; 1 for mean squared error."""
    return 100 if task == "classification" else 1


@dataclass(frozen=True)
class Summary:
    """One model on one split over all clients that have samples there.

    weighted: mean over samples (sum of correct / sum of samples); mean, std, median: over clients, each counting
    once; worst: the worst client; worst10: mean over the worst tenth of the clients, at least one client;
    deciles: nine values, ascending; loss: mean over samples. "Worst" is lowest accuracy or highest error.
    macro_f1: see there, over all samples of all clients; NaN for a regression or classes not in common.
    """

    weighted: float
    mean: float
    std: float
    median: float
    worst: float
    worst10: float
    deciles: tuple[float, ...]
    loss: float
    macro_f1: float
    clients: int
    samples: int

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self)


def summarise(scores: ClientScores, task: TaskKind) -> Summary:
    """Summarise the clients that have samples in the split."""
    has = scores.count > 0
    score, loss, count = scores.score[has], scores.loss[has], scores.count[has]
    ordered = np.sort(score) if higher_is_better(task) else np.sort(score)[::-1]
    tenth = max(1, math.ceil(WORST_SHARE * len(score)))
    return Summary(
        weighted=float(np.average(score, weights=count)),
        mean=float(score.mean()),
        std=float(score.std()),
        median=float(np.median(score)),
        worst=float(ordered[0]),
        worst10=float(ordered[:tenth].mean()),
        deciles=tuple(float(q) for q in np.quantile(score, np.linspace(0.1, 0.9, 9))),
        loss=float(np.average(loss, weights=count)),
        macro_f1=math.nan if scores.classes is None else macro_f1(scores.classes),
        clients=len(score),
        samples=int(count.sum()),
    )


def macro_f1(classes: Int[np.ndarray, "3 classes"]) -> float:
    """Mean over the classes that occur or are predicted of F1 = 2 right / (predicted + there); NaN if none does.

    classes: by class, the samples that are predicted rightly, predicted, and there.
    """
    right, *either = classes[:, (classes[1:] > 0).any(axis=0)]
    return float(np.mean(2 * right / np.sum(either, axis=0))) if len(right) else math.nan


def hurt_fraction(
    scores: Float[np.ndarray, "clients"], reference: Float[np.ndarray, "clients"], task: TaskKind
) -> float:
    """Fraction of clients strictly worse off with this model than with the reference model.

    Clients without samples (NaN) do not count.
    """
    both = np.isfinite(scores) & np.isfinite(reference)
    if not both.any():
        return math.nan
    difference = scores[both] - reference[both]
    worse = difference < 0 if higher_is_better(task) else difference > 0
    return float(worse.mean())


@dataclass(frozen=True)
class OverSeeds:
    """Mean, sample standard deviation and the 95 % confidence half-width (Student's t) over seeds.

    std and half_width are NaN for a single seed.
    """

    mean: float
    std: float
    half_width: float
    seeds: int


def over_seeds(values: Sequence[float], confidence: float = 0.95) -> OverSeeds:
    """Summarise one number over seeds; NaN and 0 seeds if there are none."""
    array = np.asarray(values, dtype=np.float64)
    n = len(array)
    if n < 2:
        return OverSeeds(float(array.mean()) if n else math.nan, math.nan, math.nan, n)
    std = float(array.std(ddof=1))
    quantile = float(stats.t.ppf(0.5 + confidence / 2, n - 1))
    return OverSeeds(float(array.mean()), std, quantile * std / math.sqrt(n), n)
