"""Operations and bytes of a round as its method is written, from the sizes of its model.

A product of (m, k) with (k, n) counts 2 m k n operations; element-wise work counts nothing. A layer is passed once
forward and twice backward, the first layer once: nobody asks for the gradient of the samples.
"""

from math import prod
from typing import Any, NamedTuple

FLOAT = 4  # bytes
SIDE = 2048  # of the square matrices whose product is the yardstick
PRODUCT = 2 * SIDE**3  # its operations


class Counts(NamedTuple):
    """operations: additions and multiplications; bytes: samples read once, weights read and written in each step.

    Weights that fit into a cache cost less than that.
    """

    operations: float
    bytes: float


class Layer(NamedTuple):
    """One product of a model for one sample: its forward operations and its parameters."""

    operations: int
    parameters: int


def layers(model: dict[str, Any], shape: tuple[int, ...], classes: int) -> list[Layer]:
    """The products of a model whose keys are all given, from the samples to the outputs."""
    found: list[Layer] = []
    width = prod(shape)
    if "channels" in model:
        rows, columns, before = shape
        kernel, same = model["kernel"], model["padding"] == "SAME"
        for after in model["channels"]:
            if not same:
                rows, columns = rows - kernel + 1, columns - kernel + 1
            patch = kernel * kernel * before
            found.append(Layer(2 * rows * columns * patch * after, patch * after + after))
            rows, columns, before = rows // model["pool"], columns // model["pool"], after
        width = rows * columns * before
    for after in (*model.get("dense", model.get("hidden", ())), classes):
        found.append(Layer(2 * width * after, width * after + after))
        width = after
    return found


def gradient_counts(
    model: dict[str, Any], shape: tuple[int, ...], classes: int, gradients: int, updates: int, drawn: int
) -> Counts:
    """One client's round: gradients of `gradients` samples in `updates` steps on the weights.

    drawn: samples that are read.
    """
    every = layers(model, shape, classes)
    forward = sum(layer.operations for layer in every)
    parameters = sum(layer.parameters for layer in every)
    operations = gradients * (3 * forward - every[0].operations)
    return Counts(operations, FLOAT * (drawn * prod(shape) + 2 * updates * parameters))


def scoring_counts(model: dict[str, Any], shape: tuple[int, ...], classes: int, samples: int) -> Counts:
    """One model's outputs on `samples` samples."""
    every = layers(model, shape, classes)
    forward = sum(layer.operations for layer in every)
    parameters = sum(layer.parameters for layer in every)
    return Counts(samples * forward, FLOAT * (samples * prod(shape) + parameters))
