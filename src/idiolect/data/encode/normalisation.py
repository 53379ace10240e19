"""Normalisations of features, of packed modalities and of images, fitted on training rows or on each sample."""

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, UInt8

from idiolect.core.errors import require, unknown
from idiolect.core.memory import aligned_empty
from idiolect.data.modalities import Modalities
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


Rows = Float[np.ndarray, "n ..."]


def packing(
    layout: Modalities,
    x: Rows,
    normalisation: str,
    fitted: Int[np.ndarray, "_"],
    *,
    zeros_are_absent: bool = False,
) -> Callable[[Rows], Float32[np.ndarray, "n width"]]:
    """The function that packs rows of the pool, each modality normalised by itself, see `standardise`.

    x: (pool, ..., features of all modalities in their order); a modality's shape ends in its number of features.
    fitted: the rows on which the normalisation is fitted. zeros_are_absent: a modality that is all zeros is absent,
    and a time step that is all zeros is padding.
    """
    ends = np.cumsum([shape[-1] for shape in layout.shapes])[:-1]

    def parts(rows: Rows) -> dict[str, Rows]:
        return dict(zip(layout.names, np.split(rows, ends, axis=-1), strict=True))

    def is_present(part: Rows) -> Bool[np.ndarray, "n"]:
        present = np.ones(len(part), bool)
        if zeros_are_absent:
            present &= (part != 0).any(axis=tuple(range(1, part.ndim)))
        return present

    scale = {
        name: standardise(
            normalisation, part, fitted[is_present(part)[fitted]], padded=zeros_are_absent and part.ndim == 3
        )
        for name, part in parts(x).items()
    }

    def encode(rows: Rows) -> Float32[np.ndarray, "n width"]:
        split = parts(rows)
        return layout.pack(
            {name: scale[name](part) for name, part in split.items()},
            {name: is_present(part) for name, part in split.items()},
        )

    return encode


Normalisation = Literal["pixel-zscore-train", "pixel-zscore-all", "channel-zscore-train", "unit"]
IMAGES_FITTED_ON = {
    "pixel-zscore-train": "train",
    "pixel-zscore-all": "all",
    "channel-zscore-train": "train",
    "unit": "nothing",
}

_IMAGES_AT_ONCE = 4096
_EncodeImages = Callable[[UInt8[np.ndarray, "n pixels"]], Float[np.ndarray, "n pixels"]]


def pixel_statistics(
    images: UInt8[np.ndarray, "n pixels"], rows: Int[np.ndarray, "_"] | None = None
) -> tuple[Float[np.ndarray, "pixels"], Float[np.ndarray, "pixels"]]:
    """Mean and standard deviation of every pixel over the images (or some rows), from exact integer sums."""
    count, pixels = len(images) if rows is None else len(rows), images.shape[1]
    total, squares = np.zeros(pixels, dtype=np.int64), np.zeros(pixels, dtype=np.int64)
    for start in range(0, count, _IMAGES_AT_ONCE):
        part = slice(start, start + _IMAGES_AT_ONCE)
        values = images[part if rows is None else rows[part]].astype(np.int32)
        total += values.sum(axis=0)
        squares += np.square(values).sum(axis=0)
    # n Σx² - (Σx)² is an exact integer: no cancellation.
    deviation = np.sqrt((count * squares - total * total).astype(np.float64)) / count
    return total / count, deviation


def pixel_range(
    images: UInt8[np.ndarray, "n pixels"], rows: Int[np.ndarray, "_"]
) -> tuple[UInt8[np.ndarray, "pixels"], UInt8[np.ndarray, "pixels"]]:
    """Smallest and largest value of every pixel over some rows."""
    low = np.full(images.shape[1], 255, dtype=np.uint8)
    high = np.zeros(images.shape[1], dtype=np.uint8)
    for start in range(0, len(rows), _IMAGES_AT_ONCE):
        values = images[rows[start : start + _IMAGES_AT_ONCE]]
        low, high = np.minimum(low, values.min(axis=0)), np.maximum(high, values.max(axis=0))
    return low, high


def normalise(
    name: str, images: UInt8[np.ndarray, "n pixels"], train: Int[np.ndarray, "_"], *, channels: int = 1
) -> _EncodeImages:
    """The function that normalises bytes 0..255 to float32 features.

    pixel-zscore-train: (x - mean) / (std + 0.001) of each pixel, fitted on the rows `train`. Pixels are first
        clipped to their training range: otherwise a border pixel that is dark in all training images, hence has
        std 0, becomes a feature of 255,000 in a test image where it is bright;
    pixel-zscore-all: the same, fitted on all images, test images included (as in pFedMe's published code);
    channel-zscore-train: the same with one mean and deviation a channel, fitted on the rows `train`;
    unit: x / 255.

    channels: values of one pixel; they are adjacent. Raises `ConfigError` on an unknown name.
    """
    if name not in get_args(Normalisation):
        raise unknown("normalisation", name, get_args(Normalisation))
    low, high = np.uint8(0), np.uint8(255)
    if name == "unit":
        centre, scale = np.zeros(images.shape[1]), np.full(images.shape[1], 255.0)
    elif name == "pixel-zscore-all":
        centre, scale = pixel_statistics(images)
    elif name == "channel-zscore-train":
        centre, scale = _of_channels(*pixel_statistics(images, train), channels)
    else:
        centre, scale = pixel_statistics(images, train)
        low, high = pixel_range(images, train)
    offset = 0.0 if name == "unit" else 0.001
    centre, scale = centre.astype(np.float32), (scale + offset).astype(np.float32)

    def encode(rows: UInt8[np.ndarray, "n pixels"]) -> Float[np.ndarray, "n pixels"]:
        out = aligned_empty(rows.shape)
        for start in range(0, len(rows), _IMAGES_AT_ONCE):
            part = out[start : start + _IMAGES_AT_ONCE]
            np.subtract(np.clip(rows[start : start + _IMAGES_AT_ONCE], low, high), centre, out=part)
            np.divide(part, scale, out=part)
        return out

    return encode


def _of_channels(
    mean: Float[np.ndarray, "pixels"], deviation: Float[np.ndarray, "pixels"], channels: int
) -> tuple[Float[np.ndarray, "pixels"], Float[np.ndarray, "pixels"]]:
    """Each channel's mean and deviation, repeated at every pixel, from its pixels' (law of total variance)."""
    mean, deviation = mean.reshape(-1, channels), deviation.reshape(-1, channels)
    total = np.sqrt((deviation**2).mean(axis=0) + mean.var(axis=0))
    return np.tile(mean.mean(axis=0), len(mean)), np.tile(total, len(mean))
