"""Normalisations of numeric features, fitted on the training rows or on each sample alone."""

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
    """Raise `ConfigError` unless `standardise` knows the normalisation."""
    if name not in get_args(Scaling):
        raise unknown("normalisation", name, get_args(Scaling))


def standardise(
    name: str, x: Float[np.ndarray, "pool ... features"], train: Int[np.ndarray, "_"], *, padded: bool = False
) -> _Encode:
    """The function that normalises rows of the pool to float32 features.

    none: unchanged;
    zscore-train: (x - mean) / std of each feature (the last axis) over the training rows of all clients; a feature
        that is constant there is only centred;
    window: (x - mean) / (std + 1e-5) of each channel (the last axis) over the times (the second axis) of the same
        sample, which removes the sample's level and scale. (FedMultimodal's UCI HAR, 2023.)

    padded: time steps that are all zeros are padding: no statistic counts them and they stay 0.
    """
    check_scaling(name)
    if name == "none":
        return as_float32
    if name == "window":
        require(x.ndim == 3, "normalisation 'window' needs signals, samples of shape (times, channels)")
        return _per_padded_sample if padded else _per_sample
    rows = x[train].astype(np.float64)
    if padded:
        rows = rows[_not_padding(rows)]
    axes = tuple(range(rows.ndim - 1))
    centre, scale = rows.mean(axis=axes), rows.std(axis=axes)
    # A constant column's deviation is rounding, not zero.
    scale[scale <= 1e-9 * np.maximum(np.abs(centre), 1e-30)] = 1.0

    def encode(part: Float[np.ndarray, "n ..."]) -> Float32[np.ndarray, "n ..."]:
        out = aligned_empty(part.shape)
        out[...] = (part - centre) / scale
        if padded:
            out[~_not_padding(part)] = 0
        return out

    return encode


def _not_padding(x: Float[np.ndarray, "n times features"]) -> Bool[np.ndarray, "n times"]:
    return (x != 0).any(axis=-1)


def _per_sample(part: Float[np.ndarray, "n times channels"]) -> Float32[np.ndarray, "n times channels"]:
    rows = part.astype(np.float64)
    out = aligned_empty(part.shape)
    out[...] = (rows - rows.mean(axis=1, keepdims=True)) / (rows.std(axis=1, keepdims=True) + 1e-5)
    return out


def _per_padded_sample(part: Float[np.ndarray, "n times channels"]) -> Float32[np.ndarray, "n times channels"]:
    rows, valid = part.astype(np.float64), _not_padding(part)[..., None]
    count = np.maximum(valid.sum(axis=1, keepdims=True), 1)
    centred = np.where(valid, rows - rows.sum(axis=1, keepdims=True) / count, 0)
    out = aligned_empty(part.shape)
    out[...] = centred / (np.sqrt((centred**2).sum(axis=1, keepdims=True) / count) + 1e-5)
    return out


def provenance_of(name: str, published: str, fitted_on: str) -> dict[str, Any]:
    """The normalisation's entry in the provenance.

    published, fitted_on: how the publisher normalised the features and on what that was fitted; if on all samples,
    the entry says so whatever normalisation follows.
    """
    if name == "none":
        return {"name": published, "fitted_on": fitted_on}
    if fitted_on == "all":
        return {"name": f"{name}, after {published}", "fitted_on": "all"}
    return {"name": name, "fitted_on": FITTED_ON[name]}
