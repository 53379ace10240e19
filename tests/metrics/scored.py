"""A metric on given outputs, by the tiles and sums of an evaluation, beside a function of plain arrays."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from idiolect.client.objective import Objective, objective_of
from idiolect.client.samples import Samples, Tiles, tiles_of, to_device
from idiolect.core import tree
from idiolect.data.federated import Split
from idiolect.metrics.base import Metric, measure_rows
from idiolect.runtime.scoring import Each, Pool, divided, finished, score_held, score_models
from tests.federations import split_of

SIZES = (23, 1, 40, 0, 7, 12)
Parts = list[tuple[np.ndarray, np.ndarray]]


class Given(eqx.Module):
    """A model whose outputs are its inputs."""

    nothing: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return x + self.nothing


def score_tiles(
    objective: Objective, metrics: Sequence[Metric], params: PyTree, samples: Samples, ids: jax.Array, tiles: Tiles
) -> tuple[Each, Pool]:
    """The scores of clients with a model each, leaves (clients, ...), on a split; -1 where the two ways differ."""
    on = {"test": samples}, ids, {"test": tiles}
    in_turn = score_models(objective, metrics, lambda place: {"own": tree.gather(params, place)}, *on)["own"]["test"]
    held = score_held(objective, metrics, {"own": params}, *on)["own"]["test"]
    same: Any = jax.tree.map(lambda a, b: jnp.array_equal(a, b, equal_nan=a.dtype.kind == "f"), in_turn[0], held[0])
    return jax.tree.map(lambda leaf, as_held: jnp.where(as_held, leaf, -1), in_turn[0], same), held[1]


def scored(metric: Metric, parts: Parts, rows: int = 5, own: Any = None) -> tuple[np.ndarray, float]:
    """The metric of every client and over all samples. rows: of a tile. own: K_i of every client."""
    whole = split_of(parts)
    split = Split(whole.x, whole.y, whole.offsets, None if own is None else np.asarray(own))
    clients, model = len(parts), Given(jnp.zeros(()))
    params = Given(jnp.zeros(clients))

    def measure(params: Given, samples: Any, tiles: Any) -> Any:
        objective = objective_of(model, metric.task, loss=lambda output, label: jnp.zeros(()))
        return score_tiles(objective, (metric,), params, samples, jnp.arange(clients), tiles)

    each, pool = jax.jit(measure)(params, to_device(split), tiles_of(split, rows))
    values, pooled = finished((metric,), each, jax.tree.map(lambda leaf: leaf[None], pool))
    return divided(values.values[metric.name]), float(divided(pooled[metric.name])) if pooled else math.nan


def check(metric: Metric, parts: Parts, expected: Callable[..., float], tolerance: float = 1e-6) -> None:
    """Every client's value, and that over all samples, are expected(outputs, labels) in double precision."""
    values, pooled = scored(metric, parts)
    for (outputs, labels), value in zip(parts, values, strict=True):
        wanted = expected(np.asarray(outputs, float), labels) if len(labels) else math.nan
        np.testing.assert_allclose(value, wanted, rtol=tolerance, atol=tolerance)
    outputs, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    np.testing.assert_allclose(pooled, expected(np.asarray(outputs, float), labels), rtol=tolerance, atol=tolerance)
    assert abs(pooled - np.nanmean(values)) > 10 * tolerance  # another number, or the check would say little


def classes(count: int, seed: int = 0, sizes: tuple[int, ...] = SIZES, ties: bool = False) -> Parts:
    """Logits that know something of the labels; each client has classes of its own liking. ties: outputs repeat."""
    rng, parts = np.random.default_rng(seed), []
    for size in sizes:
        labels = rng.choice(count, size, p=rng.dirichlet(np.ones(count)))
        logits = rng.normal(size=(size, count)) + 1.5 * np.eye(count)[labels]
        if ties and size:
            logits = logits[rng.integers(0, -(-size // 3), size)]
        parts.append((logits.astype(np.float32), labels.astype(np.int32)))
    return parts


def numbers(seed: int = 0, sizes: tuple[int, ...] = SIZES) -> Parts:
    """Predictions of numbers, each client's around its own mean far from 0."""
    rng, parts = np.random.default_rng(seed), []
    for size in sizes:
        labels = rng.normal(rng.normal(0, 30), rng.uniform(0.5, 3), size)
        guesses = labels + rng.normal(size=size)
        parts.append((guesses.astype(np.float32)[:, None], labels.astype(np.float32)))
    return parts


def softmax(logits: np.ndarray) -> np.ndarray:
    """In double precision."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def check_units(metric: Metric, expected: Callable[..., float]) -> None:
    """A model that predicts (label - 50,000) / 9,000 has its value in the units of the label."""
    rng = np.random.default_rng(0)
    labels = rng.normal(50_000, 9_000, 100)
    guesses = labels + rng.normal(500, 2_000, 100)
    scaled, outputs = (((each - 50_000) / 9_000).astype(np.float32) for each in (labels, guesses))
    value = measure_rows([metric], outputs[:, None], scaled, 9_000.0)[metric.name]
    np.testing.assert_allclose(value, expected(guesses, labels), rtol=1e-4)
