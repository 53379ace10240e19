"""The zoo's models as functions of plain tensors, and SGD on them, as one writes them by hand in PyTorch."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

Weights = list[Tensor]
Forward = Callable[[Sequence[Tensor], Tensor], Tensor]


def body_of(model: dict[str, Any]) -> Forward:
    """(weights, samples) -> features: all but the last layer. Images are (channels, height, width)."""
    convolutions, padding = len(model.get("channels", ())), model.get("kernel", 1) // 2
    padding = padding if model.get("padding") == "SAME" else 0

    def body(weights: Sequence[Tensor], x: Tensor) -> Tensor:
        layers = list(zip(weights[::2], weights[1::2], strict=True))
        for weight, bias in layers[:convolutions]:
            x = F.relu(F.max_pool2d(F.conv2d(x, weight, bias, padding=padding), model["pool"]))
        x = x.flatten(1)
        for weight, bias in layers[convolutions:-1]:
            x = F.relu(F.linear(x, weight, bias))
        return x

    return body


def forward_of(model: dict[str, Any]) -> Forward:
    """(weights, samples) -> logits."""
    body = body_of(model)
    return lambda weights, x: F.linear(body(weights, x), weights[-2], weights[-1])


def gradient(forward: Forward, weights: Weights, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Of the mean cross-entropy."""
    return torch.autograd.grad(F.cross_entropy(forward(weights, x), y), weights)


def trainable(weights: Sequence[Tensor]) -> Weights:
    """A copy that gradients are taken of."""
    return [weight.detach().clone().requires_grad_() for weight in weights]


def tensors(arrays: Sequence[np.ndarray]) -> Weights:
    """Arrays as tensors of their own."""
    return [torch.from_numpy(np.array(array)) for array in arrays]


def images(x: np.ndarray) -> np.ndarray:
    """(clients, samples, height, width, channels) as PyTorch wants it; other samples as they are."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 2)) if x.ndim == 5 else x


def use_faster_threads(trial: Callable[[], None]) -> None:
    """Let PyTorch use one thread or all, whichever runs `trial` faster.

    Many small operations wait for each other's threads, and on a busy machine they wait long.
    """
    seconds: dict[int, float] = {}
    for threads in dict.fromkeys((torch.get_num_threads(), 1)):
        torch.set_num_threads(threads)
        trial()
        began = time.perf_counter()
        trial()
        seconds[threads] = time.perf_counter() - began
    torch.set_num_threads(min(seconds, key=lambda threads: seconds[threads]))


class Net(nn.Module):
    """The same model as a module, for systems that want one; counts the samples whose loss it has computed."""

    def __init__(self, model: dict[str, Any], weights: Sequence[np.ndarray]) -> None:
        super().__init__()
        self.weights = nn.ParameterList(tensors(weights))
        self.gradients, self._forward = 0, forward_of(model)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        return self._forward(list(self.weights), x)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Mean cross-entropy."""
        self.gradients += len(y)
        return F.cross_entropy(self(x), y)

    def arrays(self) -> list[np.ndarray]:
        """The weights."""
        return [weight.detach().numpy().copy() for weight in self.weights]
