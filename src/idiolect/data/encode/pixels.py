"""Named normalisations of images stored as bytes; the pool is never copied to floats as a whole."""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int, UInt8

from idiolect.core.aligned import aligned_empty
from idiolect.core.errors import unknown

Normalisation = Literal["pixel-zscore-train", "pixel-zscore-all", "channel-zscore-train", "unit"]
FITTED_ON = {
    "pixel-zscore-train": "train",
    "pixel-zscore-all": "all",
    "channel-zscore-train": "train",
    "unit": "nothing",
}

_IMAGES_AT_ONCE = 4096
_Encode = Callable[[UInt8[np.ndarray, "n pixels"]], Float[np.ndarray, "n pixels"]]


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
) -> _Encode:
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
