"""Z-scores of features that are numbers already, fitted on training rows or on each sample itself."""

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Float32, Int

from idiolect.data.aligned import aligned_empty
from idiolect.data.partition import as_float32
from idiolect.errors import require, unknown

Scaling = Literal["none", "zscore-train", "window"]
FITTED_ON: dict[str, str] = {"zscore-train": "train", "window": "nothing"}

_Encode = Callable[[Float[np.ndarray, "n ..."]], Float32[np.ndarray, "n ..."]]


def check_scaling(name: str) -> None:
    """The normalisation must be one of those that `standardise` knows."""
    if name not in get_args(Scaling):
        raise unknown("normalisation", name, get_args(Scaling))


def standardise(name: str, x: Float[np.ndarray, "pool ... features"], train: Int[np.ndarray, "_"]) -> _Encode:
    """The function from rows of the pool to float32 features.

    none: as they are;
    zscore-train: (x - mean) / std of each feature, the last axis, over all training rows of all clients; a feature
        that is constant there is only centred;
    window: (x - mean) / (std + 1e-5) of each channel, the last axis, over the times of its own sample, the second
        axis; so a sample tells nothing of its level and strength. (FedMultimodal's UCI HAR, 2023.)
    """
    check_scaling(name)
    if name == "none":
        return as_float32
    if name == "window":
        require(x.ndim == 3, "normalisation 'window' needs signals, samples of shape (times, channels)")
        return _of_own
    axes = tuple(range(x.ndim - 1))
    rows = x[train].astype(np.float64)
    centre, scale = rows.mean(axis=axes), rows.std(axis=axes)
    # A constant column's deviation is rounding, not zero.
    scale[scale <= 1e-9 * np.maximum(np.abs(centre), 1e-30)] = 1.0

    def encode(part: Float[np.ndarray, "n ..."]) -> Float32[np.ndarray, "n ..."]:
        out = aligned_empty(part.shape)
        out[...] = (part - centre) / scale
        return out

    return encode


def _of_own(part: Float[np.ndarray, "n times channels"]) -> Float32[np.ndarray, "n times channels"]:
    rows = part.astype(np.float64)
    out = aligned_empty(part.shape)
    out[...] = (rows - rows.mean(axis=1, keepdims=True)) / (rows.std(axis=1, keepdims=True) + 1e-5)
    return out


def provenance_of(name: str, published: str, fitted_on: str) -> dict[str, Any]:
    """The normalisation's entry in the provenance; `published`, `fitted_on`: how the features came.

    What the publisher fitted on all samples stays so, whatever is done after.
    """
    if name == "none":
        return {"name": published, "fitted_on": fitted_on}
    if fitted_on == "all":
        return {"name": f"{name}, after {published}", "fitted_on": "all"}
    return {"name": name, "fitted_on": FITTED_ON[name]}
