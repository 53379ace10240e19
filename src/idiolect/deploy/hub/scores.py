"""The scores over all sites, from the sums that each has sent."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from idiolect.core.errors import DataError
from idiolect.deploy.headers import Score, Scored
from idiolect.deploy.messages import Message, Vectors
from idiolect.deploy.trees import restored
from idiolect.metrics.base import Metric, OfSums
from idiolect.runtime.evaluate import ClientScores, Measured, client_scores
from idiolect.runtime.scoring import Pool, Values, over_all

ROUNDING = 1e-6
"""By so much a metric may be out of its bounds."""


def pooled_scores(
    answers: Mapping[int, Message],
    clients: int,
    names: Sequence[str],
    splits: Sequence[str],
    metrics: Sequence[Metric],
    outputs: int,
    scale: float = 1.0,
    samples: Mapping[int, Mapping[str, int]] | None = None,
) -> list[ClientScores]:
    """Each named model's scores on each split. answers: client number -> its answer; the others have no score.

    outputs: of the model; scale: see `client_scores`. A metric that no sums give, such as AUROC, has each site's own
    value, and none over all. samples: client number -> split -> the samples that it joined with. Raises `DataError`
    for an answer that cannot be read, that counts more samples, or whose metric is out of its bounds.
    """
    scored = {client: Scored.of(answer, "its scores") for client, answer in answers.items()}
    measured: dict[str, dict[str, Measured]] = {}
    for name in names:
        for split in splits:
            reported = {client: _reported(one, name, split, metrics) for client, one in scored.items()}
            reported = {client: value for client, value in reported.items() if value is not None}
            for client, value in reported.items():
                most = None if samples is None else samples.get(client, {}).get(split, 0)
                _check_possible(value, f"of model '{name}' on the {split} split", metrics, most)
            pool = [
                _sums(answers[client].vectors, name, split, metrics, outputs, value.count)
                for client, value in reported.items()
            ]
            each = Values(
                _column(clients, {client: value.loss for client, value in reported.items()}),
                _column(clients, {client: value.count for client, value in reported.items()}).astype(np.int64),
                {
                    metric.name: (_quotient(clients, reported, metric, 0), _quotient(clients, reported, metric, 1))
                    for metric in metrics
                },
            )
            stacked = {
                key: jax.tree.map(lambda *parts: np.stack(parts), *[sums[key] for sums in pool])
                for key in (pool[0] if pool else {})
            }
            counts = np.array([value.count for value in reported.values()], np.int32)
            parts = [metric for metric in metrics if metric.name in stacked]
            values = over_all(parts, Pool(counts, stacked, {}, {}, None, None)) if pool else {}
            measured.setdefault(name, {})[split] = (each, values)
    return client_scores(measured, metrics, scale)


def readable_scores(
    answers: Mapping[int, Message], *of: Any, refused: Callable[[int, str], object] = lambda *_: None
) -> list[ClientScores]:
    """As `pooled_scores`, but an answer that it refuses counts as none, and costs no other site its scores.

    refused: called with the client number and the reason.
    """
    try:
        return pooled_scores(answers, *of)
    except DataError:
        good = dict[int, Message]()
        for client, answer in answers.items():
            try:
                pooled_scores({client: answer}, *of)
            except DataError as error:
                refused(client, str(error))
            else:
                good[client] = answer
        return pooled_scores(good, *of)


def _check_possible(score: Score, where: str, metrics: Sequence[Metric], most: int | None) -> None:
    """Raise `DataError` for more samples than `most`, or a metric out of its bounds."""
    if most is not None and score.count > most:
        raise DataError(f"its scores {where} count {score.count:,} samples; it joined with {most:,}")
    for metric in metrics:
        top, bottom = score.values[metric.name]
        least, largest = (bound / metric.unit for bound in metric.bounds)
        if bottom < 0 or (bottom > 0 and not least - ROUNDING <= top / bottom <= largest + ROUNDING):
            raise DataError(f"its {metric.name} {where} is {top:g} / {bottom:g}, which is out of bounds")


def _reported(scored: Scored, name: str, split: str, metrics: Sequence[Metric]) -> Score | None:
    """What a site says of one model on one split; None if nothing. Raises `DataError` if a metric is missing."""
    score = scored.scores.get(name, {}).get(split)
    missing = [] if score is None else [metric.name for metric in metrics if metric.name not in score.values]
    if missing:
        raise DataError(f"its scores of model '{name}' on the {split} split have no {missing[0]}")
    return score


def _column(clients: int, values: Mapping[int, float]) -> np.ndarray:
    column = np.zeros(clients, np.float64)
    for client, value in values.items():
        column[client] = value
    return column


def _quotient(clients: int, reported: Mapping[int, Score], metric: Metric, part: int) -> np.ndarray:
    """The numerators (part 0) or denominators (1) of each client's value of a metric."""
    return _column(clients, {client: value.values[metric.name][part] for client, value in reported.items()})


def _sums(
    vectors: Vectors, name: str, split: str, metrics: Sequence[Metric], outputs: int, count: int
) -> dict[str, Any]:
    """The sums of each metric over `count` samples that a site has sent, in the structure that the metric gives them.

    Raises `DataError` for other shapes, and for a number of samples that is negative or more than all.
    """
    found: dict[str, Any] = {}
    start = f"{name}/{split}/"
    given = {key.removeprefix(start): vector for key, vector in vectors.items() if key.startswith(start)}
    for metric in metrics:
        if not isinstance(metric, OfSums):
            continue
        label = jnp.zeros((), jnp.int32 if metric.task == "classification" else jnp.float32)
        like = jax.eval_shape(metric.sample, jax.ShapeDtypeStruct((outputs,), jnp.float32), label)
        counts = jax.tree.map(lambda leaf: leaf.dtype == bool, like)
        like = jax.tree.map(lambda leaf: leaf.update(dtype=jnp.int32) if leaf.dtype == bool else leaf, like)
        own = {
            "value" if key == metric.name else key.removeprefix(f"{metric.name}/"): vector
            for key, vector in given.items()
            if key == metric.name or key.startswith(f"{metric.name}/")
        }
        if own:
            sums = found[metric.name] = restored(own, like, f"its sums of {metric.name}")
            for is_count, leaf in zip(jax.tree.leaves(counts), jax.tree.leaves(sums), strict=True):
                if is_count and np.any((np.asarray(leaf) < 0) | (np.asarray(leaf) > count)):
                    raise DataError(
                        f"its sums of {metric.name} of model '{name}' on the {split} split are no numbers of samples "
                        f"between 0 and {count:,}"
                    )
    return found
