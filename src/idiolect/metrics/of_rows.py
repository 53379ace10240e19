"""Metrics of some rows at once, from a model's outputs."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from idiolect.metrics.base import Metric, OfSamples, OfSums


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
        each = jax.vmap(metric.sample)(jnp.asarray(outputs), jnp.asarray(labels))
        if isinstance(metric, OfSums):
            sums = jax.tree.map(_sum, each)
            above, below = metric.finish(sums, jnp.asarray(len(labels)))
        else:
            assert isinstance(metric, OfSamples)
            tiles = jax.tree.map(lambda leaf: leaf[None], each)
            keep, owner = jnp.ones((1, len(labels)), bool), jnp.zeros(1, jnp.int32)
            above, below = metric.finish(tiles, keep, owner, 1)
        quotient = float(np.asarray(above).reshape(-1)[0]), float(np.asarray(below).reshape(-1)[0])
        values[metric.name] = quotient[0] / quotient[1] * scale**metric.degree if quotient[1] > 0 else float("nan")
    return values


def _sum(leaf: Shaped[Array, "n ..."]) -> Shaped[Array, "..."]:
    """The sum over rows, of floats in double precision."""
    wide = np.asarray(leaf)
    return jnp.asarray(wide.sum(axis=0, dtype=np.float64 if wide.dtype.kind == "f" else np.int64))
