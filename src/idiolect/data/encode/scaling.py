"""Z-scores of features that are numbers already, fitted on training rows or on each sample itself."""

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from idiolect.core.aligned import aligned_empty
from idiolect.core.errors import require, unknown
from idiolect.data.partition import as_float32

Scaling = Literal["none", "zscore-train", "window"]
FITTED_ON: dict[str, str] = {"zscore-train": "train", "window": "nothing"}

_Encode = Callable[[Float[np.ndarray, "n ..."]], Float32[np.ndarray, "n ..."]]


def check_scaling(name: str) -> None:
    """The normalisation must be one of those that `standardise` knows."""
    if name not in get_args(Scaling):
        raise unknown("normalisation", name, get_args(Scaling))


def standardise(
    name: str, x: Float[np.ndarray, "pool ... features"], train: Int[np.ndarray, "_"], *, padded: bool = False
) -> _Encode:
    """The function from rows of the pool to float32 features.

    padded: of samples (times, features), times whose numbers are all zero are padding; they count nowhere and stay 0.

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
        return _of_own_padded if padded else _of_own
    rows = x[train].astype(np.float64)
    if padded:
        rows = rows[_there(rows)]
    axes = tuple(range(rows.ndim - 1))
    centre, scale = rows.mean(axis=axes), rows.std(axis=axes)
    # A constant column's deviation is rounding, not zero.
    scale[scale <= 1e-9 * np.maximum(np.abs(centre), 1e-30)] = 1.0

    def encode(part: Float[np.ndarray, "n ..."]) -> Float32[np.ndarray, "n ..."]:
        out = aligned_empty(part.shape)
        out[...] = (part - centre) / scale
        if padded:
            out[~_there(part)] = 0
        return out

    return encode


def _there(x: Float[np.ndarray, "n times features"]) -> Bool[np.ndarray, "n times"]:
    return (x != 0).any(axis=-1)


def _of_own(part: Float[np.ndarray, "n times channels"]) -> Float32[np.ndarray, "n times channels"]:
    rows = part.astype(np.float64)
    out = aligned_empty(part.shape)
    out[...] = (rows - rows.mean(axis=1, keepdims=True)) / (rows.std(axis=1, keepdims=True) + 1e-5)
    return out


def _of_own_padded(part: Float[np.ndarray, "n times channels"]) -> Float32[np.ndarray, "n times channels"]:
    rows, there = part.astype(np.float64), _there(part)[..., None]
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    centred = np.where(there, rows - rows.sum(axis=1, keepdims=True) / count, 0)
    out = aligned_empty(part.shape)
    out[...] = centred / (np.sqrt((centred**2).sum(axis=1, keepdims=True) / count) + 1e-5)
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
