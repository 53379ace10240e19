"""The scores over all sites, from the sums that each has sent."""

from collections.abc import Mapping, Sequence
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


def pooled_scores(
    answers: Mapping[int, Message],
    clients: int,
    names: Sequence[str],
    splits: Sequence[str],
    metrics: Sequence[Metric],
    outputs: int,
    scale: float = 1.0,
) -> list[ClientScores]:
    """Each named model's scores on each split. answers: client number -> its answer; the others have no score.

    outputs: of the model; scale: see `client_scores`. A metric that no sums give, such as AUROC, has each site's own
    value, and none over all. Raises `DataError` for an answer that cannot be read.
    """
    scored = {client: Scored.of(answer, "its scores") for client, answer in answers.items()}
    measured: dict[str, dict[str, Measured]] = {}
    for name in names:
        for split in splits:
            reported = {client: _reported(one, name, split, metrics) for client, one in scored.items()}
            reported = {client: value for client, value in reported.items() if value is not None}
            pool = [_sums(answers[client].vectors, name, split, metrics, outputs) for client in reported]
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


def readable_scores(answers: Mapping[int, Message], *of: Any) -> list[ClientScores]:
    """As `pooled_scores`, but an answer that cannot be read counts as none, and costs no other site its scores."""
    try:
        return pooled_scores(answers, *of)
    except DataError:
        return pooled_scores({client: a for client, a in answers.items() if _is_read({client: a}, *of)}, *of)


def _is_read(answers: Mapping[int, Message], *of: Any) -> bool:
    try:
        pooled_scores(answers, *of)
    except DataError:
        return False
    return True


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


def _sums(vectors: Vectors, name: str, split: str, metrics: Sequence[Metric], outputs: int) -> dict[str, Any]:
    """The sums of each metric that a site has sent, in the structure that the metric gives them."""
    found: dict[str, Any] = {}
    start = f"{name}/{split}/"
    given = {key.removeprefix(start): vector for key, vector in vectors.items() if key.startswith(start)}
    for metric in metrics:
        if not isinstance(metric, OfSums):
            continue
        label = jnp.zeros((), jnp.int32 if metric.task == "classification" else jnp.float32)
        like = jax.eval_shape(metric.sample, jax.ShapeDtypeStruct((outputs,), jnp.float32), label)
        like = jax.tree.map(lambda leaf: leaf.update(dtype=jnp.int32) if leaf.dtype == bool else leaf, like)
        own = {
            "value" if key == metric.name else key.removeprefix(f"{metric.name}/"): vector
            for key, vector in given.items()
            if key == metric.name or key.startswith(f"{metric.name}/")
        }
        if own:
            found[metric.name] = restored(own, like, f"its sums of {metric.name}")
    return found
