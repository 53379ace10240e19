"""The yardstick: float32 products of 2048 x 2048 matrices in JAX; a round is one product."""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.counts import SIDE
from benchmarks.peers import System
from benchmarks.samples import Given
from benchmarks.workloads import Workload


class Products:
    """One product after the other."""

    gradients = None

    def __init__(self) -> None:
        self.a = jnp.full((SIDE, SIDE), 1 / SIDE, jnp.float32)
        self.product = jax.jit(lambda a: a @ a)

    def rounds(self, count: int) -> None:
        """`count` products."""
        for _ in range(count):
            self.product(self.a).block_until_ready()

    def result(self) -> list[np.ndarray]:
        """The product."""
        return [np.asarray(self.product(self.a))]

    def close(self) -> None:
        """Nothing to let go of."""


def make(work: Workload, given: Given) -> System:
    """The products, whatever the workload."""
    del work, given
    return Products()
