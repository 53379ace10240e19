"""Metrics of some rows at once, from a model's outputs."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Shaped

from idiolect.metrics.base import Metric, OfSamples, OfSums, wide


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
