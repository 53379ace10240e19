"""fedjax: its federated averaging with its `jit` backend, which runs a client's steps one by one.

It calls `jax.tree_map`, a name that JAX has since taken away; here it gets it back.
"""

from collections.abc import Iterator
from typing import Any

import fedjax
import jax
import jax.numpy as jnp
import numpy as np
from fedjax.algorithms import fed_avg

from benchmarks.peers import System
from benchmarks.peers.jax_models import gradient_of
from benchmarks.samples import Given, samples
from benchmarks.workloads import Workload

jax.tree_map = jax.tree.map


class Counted(fedjax.ClientDataset):
    """A client's samples that count how many of them go into gradients."""

    taken = 0

    def shuffle_repeat_batch(self, *args: Any, **kwargs: Any) -> Iterator[dict[str, np.ndarray]]:
        """fedjax's own batches, counted."""
        for batch in super().shuffle_repeat_batch(*args, **kwargs):
            Counted.taken += len(batch["y"])
            yield batch


class Averaging:
    """The server's state between rounds."""

    def __init__(self, work: Workload, given: Given) -> None:
        fedjax.set_for_each_client_backend("jit")
        x, y = samples(work.clients, work.samples, work.shape, work.classes, alike=given.alike)
        self.data = [Counted({"x": x[i], "y": y[i].astype(np.int32)}) for i in range(work.clients)]
        gradient = gradient_of(work.model)
        self.algorithm = fed_avg.federated_averaging(
            lambda params, batch, _: gradient(params, batch["x"], batch["y"]),
            fedjax.optimizers.sgd(work.method["rate"]),
            fedjax.optimizers.sgd(1.0),
            fedjax.ShuffleRepeatBatchHParams(work.method["batch_size"], num_epochs=work.method["epochs"]),
        )
        self.state = self.algorithm.init([jnp.asarray(weight) for weight in given.weights])
        self.given, self.done, self.key = given, 0, jax.random.key(0)

    @property
    def gradients(self) -> int:
        """As the batches count them."""
        return Counted.taken

    def rounds(self, count: int) -> None:
        """One after the other."""
        for _ in range(count):
            cohort = self.given.cohorts[self.done]
            self.key, *keys = jax.random.split(self.key, len(cohort) + 1)
            clients = [(str(i), self.data[i], key) for i, key in zip(cohort, keys, strict=True)]
            self.state, _ = self.algorithm.apply(self.state, clients)
            self.done += 1
        jax.block_until_ready(self.state.params)

    def result(self) -> list[np.ndarray]:
        """The shared model."""
        return [np.asarray(weight) for weight in self.state.params]

    def close(self) -> None:
        """Nothing to let go of."""


def make(work: Workload, given: Given) -> System:
    """The training."""
    return Averaging(work, given)
