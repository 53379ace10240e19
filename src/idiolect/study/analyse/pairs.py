"""Methods compared with one another: paired by seed, and client by client."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from idiolect.metrics.base import Metric
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.analyse import resolution
from idiolect.study.analyse.client_tests import Clients, clients_among
from idiolect.study.analyse.intervals import Difference, beyond_noise, holm, least_shown, paired
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell

Scores = Mapping[tuple[str, str], Mapping[int, ClientScores]]
"""(method, model) -> seed -> every client's test scores."""


@dataclass(frozen=True)
class Pair:
    """One named model against the reference, on the same seeds.

    difference: over all samples, in the units in which the metric is shown; None with fewer than two common seeds.
    p: Holm's adjusted p value among all pairs of the table; NaN without a difference, or if it has no p value.
    least: the smallest difference that these seeds can show, before the correction; NaN where that is not known.
    """

    method: str
    model: str
    difference: Difference | None
    p: float
    clients: Clients
    least: float = math.nan

    @property
    def beyond(self) -> bool:
        """Whether the difference is beyond the noise of the seeds."""
        return beyond_noise(self.p)


def reference_of(results: Results, cell: Cell) -> tuple[str, str]:
    """(method, model) that the others are compared with: local training if it is in the table, else the first.

    Where settings of local training were tried, it is the one that validation data chose.
    """
    method = next(iter(results.standing(cell, "local")), cell.methods[0])
    return method.title, results.names(cell, method)[0]


def pairs_of(results: Results, cell: Cell, scores: Scores | None = None) -> list[Pair]:
    """Every other named model of a cell that was run against `reference_of`, in the table's order.

    Where settings were tried, only the chosen ones are tested: the choice was made on validation data, so the others
    are no further tests. scores: `scores_of` the cell, if they are known already.
    """
    known = scores_of(results, cell) if scores is None else scores
    standing = {method.title for method in results.standing(cell, *(method.name for method in cell.methods))}
    tested = {key: of for key, of in known.items() if key[0] in standing}
    return pairs_among(tested, reference_of(results, cell), results.metric(cell), results.clients(cell))


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
    sides = {
        key: ([scores[key][s] for s in seeds], [base[s] for s in seeds]) for key, seeds in common.items() if seeds
    }
    differences = {key: _over_all(*pair, metric) for key, pair in sides.items()}
    tested = [key for key, (difference, _) in differences.items() if difference is not None]
    p_values = [1.0 if d.p is None else d.p for d, _ in differences.values() if d is not None]
    adjusted = dict(zip(tested, holm(p_values), strict=True))
    clients = dict(zip(sides, clients_among([*sides.values()], metric, names), strict=True))
    return [
        Pair(
            *key,
            difference,
            math.nan if difference is None or difference.p is None else adjusted[key],
            clients[key],
            least,
        )
        for key, (difference, least) in differences.items()
    ]


def _over_all(
    measured: Sequence[ClientScores], base: Sequence[ClientScores], metric: Metric
) -> tuple[Difference | None, float]:
    """(the difference over all samples, the smallest that so many seeds can show)."""
    seeds = [
        (a, b)
        for a, b in zip(measured, base, strict=True)
        if not math.isnan(a.pooled[metric.name] - b.pooled[metric.name])
    ]
    if len(seeds) < 2:
        return None, math.nan
    one, other = ([metric.unit * side.pooled[metric.name] for side in sides] for sides in zip(*seeds, strict=True))
    step = metric.unit * resolution.of_samples([side for pair in seeds for side in pair], metric)
    return paired(one, other, resolution=step), least_shown(len(seeds), step) if step > 0 else math.nan
