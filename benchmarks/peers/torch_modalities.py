"""mmFL as an eager loop over clients and modalities in PyTorch, as a good engineer writes it by hand.

Modules stay where they are and weights are copied into them, a list by one call; torch's own GRU and convolutions.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

Weights = list[Tensor]


class Branch(nn.Module):
    """Convolutions with pooling, a GRU, the mean over time; two dense layers."""

    def __init__(self, channels: Sequence[int], features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(a, b, 5, padding=2) for a, b in pairwise((3, *channels)))
        self.recurrent = nn.GRU(channels[-1], features, batch_first=True)
        self.decoder = nn.ModuleList([nn.Linear(features, hidden), nn.Linear(hidden, classes)])

    def forward(self, x: Tensor) -> Tensor:
        """Logits of (batch, channels, time)."""
        for convolution in self.convolutions:
            x = F.relu(F.max_pool1d(convolution(x), 2))
        states, _ = self.recurrent(x.transpose(1, 2))
        first, last = self.decoder
        return last(F.relu(first(states.mean(1))))

    def load(self, branch: Mapping[str, np.ndarray]) -> None:
        """Take the weights of this name."""
        with torch.no_grad():
            for name, weight in self.named_parameters():
                weight.copy_(torch.from_numpy(np.array(branch[name])))


class MmFL:
    """x: {modality: (clients, samples, channels, time)}; y: (clients, samples)."""

    def __init__(
        self,
        x: Mapping[str, np.ndarray],
        y: np.ndarray,
        nets: Mapping[str, Branch],
        *,
        rates: Sequence[float],
        steps: int,
        batch: int,
        meta: int,
    ) -> None:
        self.x, self.y = {m: torch.from_numpy(part) for m, part in x.items()}, torch.from_numpy(y)
        self.nets, self.rates, self.steps, self.batch, self.meta = nets, rates, steps, batch, meta
        self.shared = {m: [w.detach().clone() for w in net.parameters()] for m, net in nets.items()}

    def round(self) -> None:
        """All clients, one after the other, in each modality."""
        for m, net in self.nets.items():
            weights, shared = list(net.parameters()), self.shared[m]
            encoder, decoder = weights[:-4], weights[-4:]
            total = [torch.zeros_like(w) for w in shared]
            for client in range(len(self.y)):
                rate = self.choice(net, weights, shared, self.x[m][client], self.y[client])
                with torch.no_grad():
                    torch._foreach_copy_(weights, shared)
                order = torch.cat([torch.randperm(self.y.shape[1])[: self.batch] for _ in range(self.steps)])
                for rows in order.split(self.batch):
                    x, y = self.x[m][client][rows], self.y[client][rows]
                    for part in (encoder, decoder):
                        slopes = torch.autograd.grad(F.cross_entropy(net(x), y), part)
                        with torch.no_grad():
                            torch._foreach_add_(part, slopes, alpha=-rate)
                with torch.no_grad():
                    torch._foreach_add_(total, weights, alpha=1 / len(self.y))
            self.shared[m] = total

    def choice(self, net: Branch, weights: Weights, shared: Weights, x: Tensor, y: Tensor) -> float:
        """The candidate with the least loss after one step on d; every candidate's step is along one gradient."""
        if len(self.rates) == 1:
            return self.rates[0]
        rows = torch.randperm(len(y))[: self.meta]
        x, y = x[rows], y[rows]
        losses: list[float] = []
        with torch.no_grad():
            torch._foreach_copy_(weights, shared)
        slopes = torch.autograd.grad(F.cross_entropy(net(x), y), weights)
        with torch.no_grad():
            for rate in self.rates:
                torch._foreach_copy_(weights, shared)
                torch._foreach_add_(weights, slopes, alpha=-rate)
                losses.append(F.cross_entropy(net(x), y).item())
        return self.rates[int(np.argmin(losses))]
