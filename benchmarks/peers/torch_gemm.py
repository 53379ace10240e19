"""The same products as `gemm`, in PyTorch."""

import numpy as np
import torch

from benchmarks.counts import SIDE
from benchmarks.peers import System
from benchmarks.samples import Given
from benchmarks.workloads import Workload


class Products:
    """One product after the other."""

    gradients = None

    def __init__(self) -> None:
        self.a = torch.full((SIDE, SIDE), 1 / SIDE)

    def rounds(self, count: int) -> None:
        """`count` products."""
        for _ in range(count):
            torch.mm(self.a, self.a)

    def result(self) -> list[np.ndarray]:
        """The product."""
        return [torch.mm(self.a, self.a).numpy()]

    def close(self) -> None:
        """Nothing to let go of."""


def make(work: Workload, given: Given) -> System:
    """The products, whatever the workload."""
    del work, given
    return Products()
