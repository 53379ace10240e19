"""The eager loop over clients in PyTorch that a good engineer writes by hand.

All samples lie in memory as tensors, a client's batches are cut from one random permutation, weights are plain
tensors that are changed in place, a list of them by one call (`torch._foreach_*`, as `torch.optim.SGD` does).
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.peers import System
from benchmarks.peers.torch_models import (
    Weights,
    body_of,
    forward_of,
    gradient,
    images,
    tensors,
    trainable,
    use_faster_threads,
)
from benchmarks.samples import Given, samples
from benchmarks.workloads import Workload


class Loop:
    """What the methods share: samples, weights, the clients' batches. A method is `round`."""

    def __init__(self, work: Workload, given: Given) -> None:
        x, y = samples(work.clients, work.samples, work.shape, work.classes, alike=given.alike)
        self.x, self.y = torch.from_numpy(images(x)), torch.from_numpy(y)
        self.work, self.given, self.method = work, given, work.method
        self.weights = tensors(given.weights)
        self.forward = forward_of(work.model)
        self.done, self.gradients = 0, 0

    def rounds(self, count: int) -> None:
        """Run them one after the other."""
        for _ in range(count):
            self.round([int(client) for client in self.given.cohorts[self.done]])
            self.done += 1

    def round(self, cohort: list[int]) -> None:
        """One round in which `cohort` is aggregated."""
        raise NotImplementedError

    def result(self) -> list[np.ndarray]:
        """The shared model."""
        return [weight.detach().numpy() for weight in self.weights]

    def close(self) -> None:
        """Nothing to let go of."""

    def batches(self, client: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The mini-batches of one client's round; or all its samples, once for each step."""
        x, y, size, count = self.x[client], self.y[client], self.method.get("batch_size", 0), self.work.samples
        if not size:
            for _ in range(self.work.steps):
                yield x, y
        elif self.given.rows is not None:
            for row in torch.from_numpy(self.given.rows[self.done, client]):
                real = row[row >= 0]
                yield x[real], y[real]
        elif "epochs" in self.method:
            for _ in range(self.method["epochs"]):
                for rows in torch.randperm(count).split(size):
                    yield x[rows], y[rows]
        else:  # the next pass over the data begins where one ends
            need = self.work.steps * size
            order = torch.cat([torch.randperm(count) for _ in range(-(-need // count))])[:need]
            for rows in order.split(size):
                yield x[rows], y[rows]

    def descend(self, weights: Weights, x: Tensor, y: Tensor, rate: float) -> None:
        """One step of SGD, in place."""
        slopes = gradient(self.forward, weights, x, y)
        self.gradients += len(y)
        with torch.no_grad():
            torch._foreach_add_(weights, slopes, alpha=-rate)

    def sgd(self, start: Weights, client: int) -> Weights:
        """The client's local SGD."""
        weights = trainable(start)
        for x, y in self.batches(client):
            self.descend(weights, x, y, self.method["rate"])
        return [weight.detach() for weight in weights]


class FedAvg(Loop):
    """The mean of the cohort's models; all clients hold equally many samples."""

    def round(self, cohort: list[int]) -> None:
        """Average what they trained."""
        total = [torch.zeros_like(weight) for weight in self.weights]
        for client in cohort:
            torch._foreach_add_(total, self.sgd(self.weights, client), alpha=1 / len(cohort))
        self.weights = total


class PFedMe(Loop):
    """Algorithm 1; all clients train, as in the published code, and the cohort is averaged."""

    def local(self, client: int) -> Weights:
        """w_{i,R}."""
        rate, inner, pull = self.method["rate"], self.method["inner_rate"], self.method["prox_weight"]
        theta = trainable(self.weights)
        w = [weight.clone() for weight in self.weights]
        for x, y in self.batches(client):
            for _ in range(self.method["inner_steps"]):
                slopes = gradient(self.forward, theta, x, y)
                self.gradients += len(y)
                with torch.no_grad():
                    torch._foreach_lerp_(theta, w, inner * pull)
                    torch._foreach_add_(theta, slopes, alpha=-inner)
            with torch.no_grad():
                torch._foreach_lerp_(w, theta, rate * pull)
        return w

    def round(self, cohort: list[int]) -> None:
        """Average the cohort's w_{i,R}; the server's step is 1."""
        total = [torch.zeros_like(weight) for weight in self.weights]
        for client in range(self.work.clients):
            w = self.local(client)
            if client in cohort:
                torch._foreach_add_(total, w, alpha=1 / len(cohort))
        self.weights = total


class FedU(Loop):
    """Algorithm 1 on the complete graph with weight 1, everyone in the cohort."""

    def __init__(self, work: Workload, given: Given) -> None:
        super().__init__(work, given)
        self.weights = [weight.expand(work.clients, *weight.shape).clone() for weight in self.weights]

    def round(self, cohort: list[int]) -> None:
        """Train all, then mix: sum over l of (w_k - w_l) is N w_k - sum of all."""
        del cohort
        method, count = self.method, self.work.clients
        step = method["rate"] * method["epochs"] * method["coupling"]
        for client in range(count):
            trained = self.sgd([weight[client] for weight in self.weights], client)
            for weight, new in zip(self.weights, trained, strict=True):
                weight[client] = new
        for weight in self.weights:
            everyone = weight.sum(0)
            weight.mul_(1 - step * count).add_(everyone, alpha=step)


class PFLEGO(Loop):
    """Algorithm 1 with SGD at the server; features are computed once a round."""

    def __init__(self, work: Workload, given: Given) -> None:
        super().__init__(work, given)
        self.body, self.heads = body_of(work.model), [tensors(given.weights[-2:]) for _ in range(work.clients)]

    def round(self, cohort: list[int]) -> None:
        """The heads' steps on features, then one gradient of everything."""
        method, work = self.method, self.work
        step = method["rate"] * work.clients / len(cohort)
        total = [torch.zeros_like(weight) for weight in self.weights[:-2]]
        for client in cohort:
            x, y = self.x[client], self.y[client]
            head = trainable(self.heads[client])
            with torch.no_grad():
                features = self.body(self.weights, x)
            for _ in range(method["local_steps"] - 1):
                slopes = gradient(lambda head, x: F.linear(x, *head), head, features, y)
                with torch.no_grad():
                    torch._foreach_add_(head, slopes, alpha=-method["head_rate"])
            whole = [*trainable(self.weights[:-2]), *head]
            slopes = gradient(self.forward, whole, x, y)
            self.gradients += len(y)
            with torch.no_grad():
                torch._foreach_add_(head, slopes[-2:], alpha=-step)
                torch._foreach_add_(total, slopes[:-2], alpha=step / work.clients)
            self.heads[client] = [weight.detach() for weight in head]
        with torch.no_grad():
            torch._foreach_sub_(self.weights[:-2], total)

    def result(self) -> list[np.ndarray]:
        """The body, and all heads."""
        heads = [torch.stack(parts).numpy() for parts in zip(*self.heads, strict=True)]
        return [*(weight.numpy() for weight in self.weights[:-2]), *heads]


class Scores(Loop):
    """Every client's own model on its own samples: mean loss and accuracy."""

    def round(self, cohort: list[int]) -> None:
        """One evaluation of all."""
        del cohort
        found: list[tuple[float, float]] = []
        with torch.no_grad():
            for client in range(self.work.clients):
                y = self.y[client]
                outputs = self.forward([weight[client] for weight in self.weights], self.x[client])
                correct = (outputs.argmax(1) == y).sum().item()
                found.append((F.cross_entropy(outputs, y).item(), correct / len(y)))
        self.scores = np.array(found).T

    def result(self) -> list[np.ndarray]:
        """[losses, accuracies], each (clients,)."""
        return list(self.scores)


METHODS: dict[str, type[Loop]] = {
    "fedavg": FedAvg,
    "pfedme": PFedMe,
    "fedu": FedU,
    "pflego": PFLEGO,
    "evaluate": Scores,
}


def make(work: Workload, given: Given) -> System:
    """The loop of the workload's method, with the number of threads that is faster for it here and now."""
    method = METHODS[work.method["name"]]
    two = min(work.clients, 2)  # enough to see which is faster
    start = replace(given, cohorts=np.arange(two)[None], rows=None)
    trial = method(replace(work, clients=two, cohort=two), start)

    def again() -> None:
        trial.done = 0
        trial.rounds(1)

    use_faster_threads(again)
    return method(work, given)
