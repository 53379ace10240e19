"""PyTorch with all clients in one batch: `torch.func.vmap` over the clients, each step compiled by `torch.compile`.

Weights have a leading axis of clients. One call computes a step of all clients; batches are drawn as the eager loop
draws them (`torch_loop`). The compiled step is checked to be one graph.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.peers import System
from benchmarks.peers.torch_loop import Loop
from benchmarks.peers.torch_models import Forward, Weights, use_faster_threads
from benchmarks.samples import Given
from benchmarks.workloads import Workload

Step = Callable[..., tuple[Tensor, ...]]


def over_clients(function: Step, shared: int = 0) -> Step:
    """Map a function of tensors over their first axis, compiled; the last `shared` arguments are the same for all."""

    def mapped(*arguments: Tensor) -> tuple[Tensor, ...]:
        axes = tuple(None if i >= len(arguments) - shared else 0 for i in range(len(arguments)))
        return torch.func.vmap(function, in_dims=axes)(*arguments)

    return torch.compile(mapped, fullgraph=True, dynamic=False)


def slopes_of(forward: Forward, weights: Weights, x: Tensor, y: Tensor, real: Tensor) -> tuple[Tensor, ...]:
    """The gradient of the mean cross-entropy over the samples with weight 1."""

    def loss(weights: Weights) -> Tensor:
        each = F.cross_entropy(forward(weights, x), y, reduction="none")
        return (each * real).sum() / real.sum()

    return torch.func.grad(loss)(weights)


class Batched(Loop):
    """What the methods share: the cohort's weights in one tensor for each layer. A method is `round`."""

    def everyone(self, clients: list[int]) -> Weights:
        """The shared model, once for each client."""
        return [weight.expand(len(clients), *weight.shape).contiguous() for weight in self.weights]

    def steps(self, clients: list[int]) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Every step's mini-batches (clients, batch, ...): samples, labels, and 1 for each real sample, else 0."""
        if not self.method.get("batch_size", 0):
            x, y = self.x[clients], self.y[clients]
            return [(x, y, torch.ones(y.shape))] * self.work.steps
        found: list[tuple[Tensor, Tensor, Tensor]] = []
        for row in self._rows(clients):
            real = row >= 0
            rows, which = row.clamp(min=0), torch.tensor(clients)[:, None]
            found.append((self.x[which, rows], self.y[which, rows], real.float()))
        return found

    def _rows(self, clients: list[int]) -> Tensor:
        """(steps, clients, batch) row numbers, -1 for none."""
        if self.given.rows is not None:
            return torch.from_numpy(self.given.rows[self.done, clients]).transpose(0, 1)
        size, count = self.method["batch_size"], self.work.samples
        passes = self.method.get("epochs") or -(-self.work.steps * size // count)
        width = -(-count // size) * size if "epochs" in self.method else count  # an epoch's last batch may be short
        order = torch.full((len(clients), passes, width), -1)
        for client in range(len(clients)):
            for number in range(passes):
                order[client, number, :count] = torch.randperm(count)
        order = order.reshape(len(clients), -1)[:, : self.work.steps * size]
        return order.reshape(len(clients), self.work.steps, size).transpose(0, 1)


class FedAvg(Batched):
    """The mean of the cohort's models; all clients hold equally many samples."""

    def __init__(self, work: Workload, given: Given) -> None:
        super().__init__(work, given)
        rate, forward = self.method["rate"], self.forward

        def step(x: Tensor, y: Tensor, real: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
            slopes = slopes_of(forward, list(weights), x, y, real)
            return tuple(weight - rate * slope for weight, slope in zip(weights, slopes, strict=True))

        self.step = over_clients(step)

    def trained(self, weights: Weights, clients: list[int]) -> Weights:
        """Every client's weights after its local SGD."""
        for x, y, real in self.steps(clients):
            self.gradients += int(real.sum())
            weights = list(self.step(x, y, real, *weights))
        return weights

    def round(self, cohort: list[int]) -> None:
        """Average what they trained."""
        with torch.no_grad():
            self.weights = [weight.mean(0) for weight in self.trained(self.everyone(cohort), cohort)]


class PFedMe(Batched):
    """Algorithm 1; all clients train, as in the published code, and the cohort is averaged."""

    def __init__(self, work: Workload, given: Given) -> None:
        super().__init__(work, given)
        rate, inner, pull = self.method["rate"], self.method["inner_rate"], self.method["prox_weight"]
        forward, count, inner_steps = self.forward, len(self.weights), self.method["inner_steps"]

        def step(x: Tensor, y: Tensor, real: Tensor, *both: Tensor) -> tuple[Tensor, ...]:
            theta, w = list(both[:count]), both[count:]
            for _ in range(inner_steps):
                slopes = slopes_of(forward, theta, x, y, real)
                theta = [t - inner * (s + pull * (t - v)) for t, s, v in zip(theta, slopes, w, strict=True)]
            return *theta, *(v - rate * pull * (v - t) for v, t in zip(w, theta, strict=True))

        self.step = over_clients(step)

    def round(self, cohort: list[int]) -> None:
        """Average the cohort's w_{i,R}; the server's step is 1."""
        everyone, count = list(range(self.work.clients)), len(self.weights)
        with torch.no_grad():
            both = self.everyone(everyone) * 2
            for x, y, real in self.steps(everyone):
                self.gradients += int(real.sum()) * self.method["inner_steps"]
                both = list(self.step(x, y, real, *both))
            self.weights = [weight[cohort].mean(0) for weight in both[count:]]


class FedU(FedAvg):
    """Algorithm 1 on the complete graph with weight 1, everyone in the cohort."""

    def __init__(self, work: Workload, given: Given) -> None:
        super().__init__(work, given)
        self.weights = self.everyone(list(range(work.clients)))

    def round(self, cohort: list[int]) -> None:
        """Train all, then mix: sum over l of (w_k - w_l) is N w_k - sum of all."""
        del cohort
        method, count = self.method, self.work.clients
        step = method["rate"] * method["epochs"] * method["coupling"]
        with torch.no_grad():
            trained = self.trained(self.weights, list(range(count)))
            self.weights = [weight * (1 - step * count) + step * weight.sum(0) for weight in trained]


class Scores(Batched):
    """Every client's own model on its own samples: mean loss and accuracy."""

    def __init__(self, work: Workload, given: Given) -> None:
        super().__init__(work, given)
        forward = self.forward

        def score(x: Tensor, y: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
            outputs = forward(weights, x)
            return F.cross_entropy(outputs, y), (outputs.argmax(1) == y).float().mean()

        self.score = over_clients(score)

    def round(self, cohort: list[int]) -> None:
        """One evaluation of all."""
        del cohort
        with torch.no_grad():
            self.scores = [found.numpy() for found in self.score(self.x, self.y, *self.weights)]

    def result(self) -> list[np.ndarray]:
        """[losses, accuracies], each (clients,)."""
        return list(self.scores)


METHODS: dict[str, type[Batched]] = {"fedavg": FedAvg, "pfedme": PFedMe, "fedu": FedU, "evaluate": Scores}


def make(work: Workload, given: Given) -> System:
    """The workload's method, with the number of threads that is faster for it here and now."""
    system = METHODS[work.method["name"]](work, given)
    weights = system.weights

    def again() -> None:
        system.weights, system.done, system.gradients = weights, 0, 0
        system.rounds(1)

    use_faster_threads(again)
    system.weights, system.done, system.gradients = weights, 0, 0
    return system
