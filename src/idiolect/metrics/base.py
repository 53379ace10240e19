"""The contract of a metric: what one sample gives, and what a client's samples, or all samples, make of it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from idiolect.data.federated import TaskKind

Quotient = tuple[Shaped[np.ndarray, "..."], Shaped[np.ndarray, "..."]]
"""Numerator and denominator of a value. The denominator is 0 where there is no value, which then is NaN."""


def wide(values: PyTree[Any]) -> PyTree[np.ndarray]:
    """Arrays on the host, of float64 or int64, in which metrics are finished."""
    return jax.tree.map(lambda leaf: _wide(np.asarray(leaf)), values)


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


class Metric(ABC):
    """A number that says how well a model predicts, for each client and over all clients' samples.

    A metric extends `OfSums` or `OfSamples`, is written for ONE sample, and is named in `registry.METRICS`.

    name: as in settings and JSON. column: the heading of tables. task: the kind of labels. higher: whether higher is
    better. percent: whether people read it in per cent. by_class: whether it compares classes across samples, so that
    it has no value over all clients where each client numbers its own labels. degree: by which power of the labels'
    scale a value grows, so that a regression on scaled labels is reported in the user's units. is_mean: whether the
    value of several samples is the mean over samples, so that the clients' values, weighted by samples, give the
    value over all samples. steps: in which steps a value goes: "samples" if each of n samples changes it by 1 / n or
    not at all; "classes" if samples of a rare class change it by more; "none" if any small change of the outputs
    changes it.
    """

    name: ClassVar[str]
    column: ClassVar[str]
    task: ClassVar[TaskKind]
    higher: ClassVar[bool]
    percent: ClassVar[bool] = False
    by_class: ClassVar[bool] = False
    degree: ClassVar[int] = 0
    is_mean: ClassVar[bool] = False
    steps: ClassVar[Literal["samples", "classes", "none"]] = "none"

    @abstractmethod
    def sample(self, outputs: Float[Array, "..."], label: Shaped[Array, ""]) -> PyTree[Array]:
        """What one sample gives. outputs: the model's, as before a softmax; for a regression one number."""

    @property
    def unit(self) -> int:
        """What a value is multiplied by to be read: 100 or 1."""
        return 100 if self.percent else 1

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value as it is read: 0 and 100 in per cent, else unknown, which is infinite."""
        return (0.0, 100.0) if self.percent else (-math.inf, math.inf)

    @property
    def key(self) -> str:
        """The name as a column of a CSV file."""
        return self.name.replace("-", "_")

    def better(self, new: float, old: float) -> bool:
        """Whether `new` is strictly better than `old`; NaN is worse than any number."""
        if math.isnan(new) or math.isnan(old):
            return math.isnan(old) and not math.isnan(new)
        return new > old if self.higher else new < old

    def best(self, values: Sequence[float]) -> int:
        """The place of the best value, the first of equals."""
        place = 0
        for other in range(1, len(values)):
            if self.better(values[other], values[place]):
                place = other
        return place

    def worse(self, values: Float[np.ndarray, "n"], reference: Float[np.ndarray, "n"]) -> Bool[np.ndarray, "n"]:
        """Where a value is strictly worse than the reference; equals and NaN are not."""
        return values < reference if self.higher else values > reference


class OfSums(Metric):
    """A metric of sums over samples.

    `sample` gives what is added up: integers are exact up to 2^31, floats keep a compensation and so their last bits.
    Samples that do not count are left out by whoever adds.
    """

    @abstractmethod
    def finish(self, sums: PyTree[np.ndarray], count: Int[np.ndarray, "n"]) -> Quotient:
        """The values of n groups of samples (clients, or all), from their sums and how many samples they have.

        It runs on the host: sums are arrays of float64 or int64 with a leading axis of length n.
        """


class OfSamples(Metric):
    """A metric that no sums give, such as one of ranks: what `sample` gives is kept of all samples until `finish`."""

    @abstractmethod
    def finish(
        self, values: PyTree[Shaped[np.ndarray, "n ..."]], owner: Int[np.ndarray, "n"], clients: int
    ) -> Quotient:
        """Each client's value, (clients,).

        It runs on the host: values are arrays of float64 or int64 of the samples that count. owner: whose each sample
        is, from 0; all 0 for the value over all samples.
        """


def segment_sum(
    values: Shaped[np.ndarray, "n"], owner: Int[np.ndarray, "n"], clients: int
) -> Float[np.ndarray, "clients"]:
    """Each client's sum; whole numbers are exact up to 2^53."""
    return np.bincount(owner, weights=values, minlength=clients)


def wins(
    score: Float[np.ndarray, "n"], positive: Bool[np.ndarray, "n"], owner: Int[np.ndarray, "n"], clients: int
) -> Float[np.ndarray, "clients"]:
    """Of each client, how many pairs of a positive and a negative sample the positive one wins; a tie is half a win.

    The Mann-Whitney U statistic, from one sort; exact up to 2^52 pairs.
    """
    if not len(owner):
        return np.zeros(clients)
    order = np.lexsort((score, owner))
    owner, score, positive = owner[order], score[order], positive[order]
    client_starts = np.r_[True, owner[1:] != owner[:-1]]
    tie_starts = client_starts | np.r_[True, score[1:] != score[:-1]]
    before = np.cumsum(~positive) - ~positive  # negatives before each place
    after = before + ~positive
    # Negatives before the start of each place's client, and of its tie; they only grow, so the last is the largest.
    of_client = np.maximum.accumulate(np.where(client_starts, before, 0))
    of_tie = np.maximum.accumulate(np.where(tie_starts, before, 0))
    ends = np.r_[np.flatnonzero(tie_starts)[1:], len(owner)] - 1  # the last place of each tie
    equal = after[ends][np.cumsum(tie_starts) - 1] - of_tie
    twice = np.where(positive, 2 * (of_tie - of_client) + equal, 0)
    return segment_sum(twice, owner, clients) / 2


def measure_rows(
    metrics: Sequence[Metric],
    outputs: Float[np.ndarray, "n outputs"],
    labels: Shaped[np.ndarray, "n"],
    scale: float = 1.0,
) -> dict[str, float]:
    """Each metric's value over all rows, NaN where it has none.

    labels: classes as numbers, or targets as the model predicts them; scale: what targets were divided by.
    """
    values: dict[str, float] = {}
    for metric in metrics:
        each = wide(jax.vmap(metric.sample)(jnp.asarray(outputs), jnp.asarray(labels)))
        if isinstance(metric, OfSums):
            sums = jax.tree.map(lambda leaf: leaf.sum(axis=0, keepdims=True), each)
            above, below = metric.finish(sums, np.array([len(labels)]))
        else:
            assert isinstance(metric, OfSamples)
            above, below = metric.finish(each, np.zeros(len(labels), np.int64), 1)
        quotient = float(above[0]), float(below[0])
        values[metric.name] = quotient[0] / quotient[1] * scale**metric.degree if quotient[1] > 0 else float("nan")
    return values
