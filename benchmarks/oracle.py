"""That two systems did equal work: the same start, the same cohorts, and what they made of it compared.

A peer that takes mini-batches from us gets idiolect's; any other is compared on samples that are alike within each
client, where the order in which it draws them changes nothing.
"""

from collections.abc import Sequence

import numpy as np

from benchmarks.workloads import Workload

TAKES_ROWS = ("torch", "torch-func")


def start_of(work: Workload, peer: str) -> dict[str, bool]:
    """How `beginning` must be called for a comparison with this peer."""
    drawn = work.method.get("batch_size", 0) > 0
    return {"rows": drawn and peer in TAKES_ROWS, "alike": drawn and peer not in TAKES_ROWS}


def distance(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
    """The largest difference of two results, relative to the largest entry, but at least to 1."""
    if [a.shape for a in one] != [b.shape for b in other]:
        return float("inf")
    gaps = (
        float(np.max(np.abs(a - b))) / max(1.0, float(np.max(np.abs(a)))) for a, b in zip(one, other, strict=True)
    )
    return max(gaps)


def expected(work: Workload, rounds: int) -> int:
    """Gradients of one sample's loss that a peer takes in so many rounds."""
    return work.gradients * work.trained * rounds
