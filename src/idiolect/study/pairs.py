"""Methods compared with one another: paired by seed, and client by client."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from idiolect.metrics.base import Metric
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.experiment import Cell
from idiolect.study.intervals import Difference, holm, paired
from idiolect.study.results import Results

ALPHA = 0.05


@dataclass(frozen=True)
class Clients:
    """How many clients are better and worse off than with the reference, beyond noise; the names of the worse ones.

    unclear: all others, which the test samples and seeds do not tell apart. told: of every client 1, -1 or 0 for
    these three; None for one without a score.
    """

    better: int
    worse: int
    unclear: int
    hurt: tuple[str, ...]
    told: tuple[int | None, ...]


Scores = Mapping[tuple[str, str], Mapping[int, ClientScores]]
"""(method, model) -> seed -> every client's test scores."""


@dataclass(frozen=True)
class Pair:
    """One named model against the reference, on the same seeds.

    difference: over all samples, in the units in which the metric is shown; None with fewer than two common seeds.
    p: Holm's adjusted p value among all pairs of the table; NaN without a difference.
    """

    method: str
    model: str
    difference: Difference | None
    p: float
    clients: Clients


def reference_of(results: Results, cell: Cell) -> tuple[str, str]:
    """(method, model) that the others are compared with: training alone if it is in the table, else the first."""
    method = next((m for m in cell.methods if m.name == "local"), cell.methods[0])
    return method.title, results.names(cell, method)[0]


def pairs_of(results: Results, cell: Cell) -> list[Pair]:
    """Every other named model of a cell that was run against `reference_of`, in the table's order."""
    return pairs_among(
        scores_of(results, cell), reference_of(results, cell), results.metric(cell), results.clients(cell)
    )


def scores_of(results: Results, cell: Cell) -> Scores:
    """Every named model's test scores in a cell, at the selected rounds, in the table's order."""
    return {
        (method.title, model): results.by_seed(cell, method, model)
        for method in cell.methods
        for model in results.names(cell, method)
    }


def pairs_among(scores: Scores, reference: tuple[str, str], metric: Metric, names: Sequence[str]) -> list[Pair]:
    """Every other model that has a seed in common with the reference, in the order of `scores`."""
    base = scores[reference]
    common = {key: sorted({*measured} & {*base}) for key, measured in scores.items() if key != reference}
    differences = {
        key: _over_all([scores[key][s] for s in seeds], [base[s] for s in seeds], metric)
        for key, seeds in common.items()
        if seeds
    }
    tested = [key for key, difference in differences.items() if difference is not None]
    p_values = [difference.p for difference in differences.values() if difference is not None]
    adjusted = dict(zip(tested, holm(p_values), strict=True))
    return [
        Pair(
            *key,
            difference,
            adjusted.get(key, math.nan),
            clients_of([scores[key][s] for s in common[key]], [base[s] for s in common[key]], metric, names),
        )
        for key, difference in differences.items()
    ]


def _over_all(measured: Sequence[ClientScores], base: Sequence[ClientScores], metric: Metric) -> Difference | None:
    pairs = [(a.pooled[metric.name], b.pooled[metric.name]) for a, b in zip(measured, base, strict=True)]
    pairs = [(metric.unit * a, metric.unit * b) for a, b in pairs if not math.isnan(a - b)]
    return paired([a for a, _ in pairs], [b for _, b in pairs]) if len(pairs) >= 2 else None


def clients_of(
    measured: Sequence[ClientScores], base: Sequence[ClientScores], metric: Metric, names: Sequence[str]
) -> Clients:
    """Which clients are better or worse off, each tested by itself, with Holm's correction over the clients.

    measured, base: of the same seeds. Accuracy: the two shares of right answers among a client's n test samples, mean
    over seeds, as if the two models had been tested on samples of their own, which is the cautious side: z of Agresti
    and Caffo ("Simple and effective confidence intervals for proportions ...", The American Statistician 2000), one
    right and one wrong answer added to each, plus the variance over seeds. So a client with one test sample proves
    nothing. Other metrics: a paired t test over seeds, which does not know how few the test samples are.
    """
    one, other = (np.stack([scores.values[metric.name] for scores in side]) for side in (measured, base))
    ours = np.flatnonzero(np.isfinite(one - other).all(axis=0))  # clients that have a value in every seed
    if metric.name == "accuracy":
        p_values, sign = _of_shares(one[:, ours], other[:, ours], _fewest(measured)[ours])
    else:
        p_values, sign = _of_seeds(one[:, ours], other[:, ours])
    sign = sign if metric.higher else -sign
    sure = np.asarray(holm(p_values.tolist())) < ALPHA if len(ours) else np.zeros(0, bool)
    worse = ours[sure & (sign < 0)]
    better = int((sure & (sign > 0)).sum())
    numbers: list[int] = worse.tolist()
    hurt = tuple(names[i] if i < len(names) else str(i) for i in numbers)
    told: list[int | None] = [None] * one.shape[1]
    for client, known, direction in zip(ours.tolist(), sure.tolist(), sign.tolist(), strict=True):
        told[client] = int(np.sign(direction)) if known else 0
    return Clients(better, len(worse), len(ours) - better - len(worse), hurt, tuple(told))


def _fewest(measured: Sequence[ClientScores]) -> Int[np.ndarray, "n"]:
    """The fewest test samples that each client has in a seed; they differ where each seed draws its own split."""
    return np.min([scores.count for scores in measured], axis=0)


def _of_shares(
    one: Float[np.ndarray, "seeds n"], other: Float[np.ndarray, "seeds n"], count: Int[np.ndarray, "n"]
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """(p values, differences) of two shares of right answers among so many samples."""
    from scipy import stats  # here: it loads slowly, and most commands never need it

    seeds = len(one)
    added = [(count * side.mean(axis=0) + 1) / (count + 2) for side in (one, other)]
    variance = sum(share * (1 - share) / (count + 2) for share in added)
    if seeds > 1:
        variance = variance + (one - other).var(axis=0, ddof=1) / seeds
    gap = added[0] - added[1]
    return 2 * stats.norm.sf(np.abs(gap) / np.sqrt(variance)), gap


def _of_seeds(
    one: Float[np.ndarray, "seeds n"], other: Float[np.ndarray, "seeds n"]
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """(p values, differences) of paired t tests over seeds; with a single seed nothing is sure."""
    gap = (one - other).mean(axis=0)
    if len(one) < 2:
        return np.ones(len(gap)), gap
    tests = [paired(list(a), list(b)).p for a, b in zip(one.T, other.T, strict=True)]
    return np.asarray(tests, np.float64), gap
