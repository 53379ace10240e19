"""Rank methods over several data sets, with the difference of average ranks that is beyond chance.

(J. Demšar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 2006.)
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from idiolect.core.errors import require
from idiolect.study.analyse.intervals import ALPHA
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell

FEWEST = 3  # cells, methods and, for a test, data sets, below which ranks say nothing


@dataclass(frozen=True)
class Ranks:
    """Average ranks over the data sets, the best first. rank: 1 is best, equals share theirs.

    The cells of one data set are no independent trials: their ranks are averaged first, and each data set counts
    once. p: of Friedman's test that all methods are alike, NaN for fewer than three data sets. critical: two average
    ranks further apart than this differ at 5 %, by Nemenyi's test, which corrects for all pairs. cells, data: the
    numbers of cells and of data sets.
    """

    names: tuple[tuple[str, str], ...]
    averages: tuple[float, ...]
    p: float
    critical: float
    cells: int
    data: int


def critical_difference(methods: int, data: int, alpha: float = ALPHA) -> float:
    """Nemenyi's critical difference of average ranks: q_alpha sqrt(k (k + 1) / (6 N)), Demšar 2006, section 3.2.2.

    k methods on N independent data sets; q_alpha: the studentised range of k means with infinitely many degrees of
    freedom / sqrt(2).
    """
    from scipy import stats  # here: it loads slowly, and most commands never need it

    q = float(stats.studentized_range.ppf(1 - alpha, methods, math.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * data))


def average_ranks(
    scores: Float[np.ndarray, "cells methods"], data: Sequence[Hashable]
) -> tuple[Float[np.ndarray, "methods"], float]:
    """Rank the methods of each cell, average the ranks over the cells of each data set, then over the data sets.

    Args:
        scores: Higher is better.
        data: The data set of each cell.

    Returns:
        The average ranks, and the p value of Friedman's test on the data sets; NaN for fewer than three of them.

    Raises:
        ConfigError: For fewer than three cells or methods.
    """
    cells, methods = scores.shape
    require(
        cells >= FEWEST and methods >= FEWEST,
        f"ranks need at least {FEWEST} cells and {FEWEST} methods, there are {cells} and {methods}",
    )
    from scipy import stats  # here: it loads slowly, and most commands never need it

    ranks = stats.rankdata(-scores, axis=1)
    places = [[i for i, each in enumerate(data) if each == name] for name in dict.fromkeys(data)]
    blocks = np.stack([ranks[place].mean(axis=0) for place in places])
    if len(blocks) < FEWEST:
        return blocks.mean(axis=0), math.nan
    if (blocks == blocks[:, :1]).all():
        return blocks.mean(axis=0), 1.0  # all are equal everywhere, of which Friedman's statistic is 0 / 0
    return blocks.mean(axis=0), float(stats.friedmanchisquare(*blocks.T).pvalue)


def data_set(cell: Cell) -> tuple[str, str]:
    """Which data set a cell is of: the name, and the file of a user's table. Its partitions are one data set."""
    return str(cell.data["name"]), str(cell.data.get("path", ""))


def ranks_of(results: Results) -> Ranks | None:
    """Rank the methods that every cell has, each by its first named model; None where there are too few.

    A method is known by its label and model. Cells that choose among settings (`tune`), or that only differ in one
    setting (`across`), are not ranked.
    """
    cells = results.experiment.cells
    if results.experiment.across or any(cell.tune for cell in cells):
        return None
    tables = [_scores(results, cell) for cell in cells]
    names = [name for name in tables[0] if all(name in table for table in tables)]
    if len(cells) < FEWEST or len(names) < FEWEST:
        return None
    data = [data_set(cell) for cell in cells]
    averages, p = average_ranks(np.array([[table[name] for name in names] for table in tables]), data)
    order = np.argsort(averages, kind="stable")
    return Ranks(
        names=tuple(names[i] for i in order),
        averages=tuple(float(averages[i]) for i in order),
        p=p,
        critical=critical_difference(len(names), len(set(data))),
        cells=len(cells),
        data=len(set(data)),
    )


def _scores(results: Results, cell: Cell) -> dict[tuple[str, str], float]:
    """(method, model) -> the score over all test samples, mean over seeds, negative if lower is better."""
    sign = 1.0 if results.metric(cell).higher else -1.0
    first = {method.title: results.names(cell, method)[0] for method in cell.methods}
    lines = [line for line in results.lines if line.cell == cell.id and first[line.method] == line.model]
    return {(line.method, line.model): sign * line.pooled.mean for line in lines if not math.isnan(line.pooled.mean)}
