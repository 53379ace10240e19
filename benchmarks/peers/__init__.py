"""The systems that are compared: each a module with `make(work, given) -> System`, in a process of its own."""

from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple, Protocol

import numpy as np

from benchmarks.samples import Given
from benchmarks.workloads import Workload


class System(Protocol):
    """One system at work on one workload.

    gradients: gradients of one sample's loss taken so far, counted as they are taken; None if it cannot say.
    """

    gradients: int | None

    def rounds(self, count: int) -> None:
        """Run `count` more rounds to their end."""
        ...

    def result(self) -> list[np.ndarray]:
        """What the rounds have made, in PyTorch's layout: the shared model, every client's, or their scores."""
        ...

    def close(self) -> None:
        """Let go of what does not end by itself."""
        ...


class Peer(NamedTuple):
    """Where a system is, and the packages it needs."""

    module: str
    packages: tuple[str, ...] = ()


OWN = "idiolect"
BEFORE = "before"
"""Another commit of idiolect, in a checkout of its own."""
SYSTEMS: dict[str, Peer] = {
    OWN: Peer("benchmarks.peers.own"),
    BEFORE: Peer("benchmarks.peers.own"),
    "torch": Peer("benchmarks.peers.torch_loop", ("torch",)),
    "torch-func": Peer("benchmarks.peers.torch_func_peer", ("torch",)),
    "fedjax": Peer("benchmarks.peers.fedjax_peer", ("fedjax", "haiku")),
    "pfl": Peer("benchmarks.peers.pfl_peer", ("pfl", "torch")),
    "flower": Peer("benchmarks.peers.flower_peer", ("flwr", "ray", "torch")),
    "gemm": Peer("benchmarks.peers.gemm"),
    "torch-gemm": Peer("benchmarks.peers.torch_gemm", ("torch",)),
}


def missing(name: str) -> str:
    """The packages that a system lacks in this interpreter, as a list in words; empty if none."""
    return ", ".join(package for package in SYSTEMS[name].packages if find_spec(package) is None)


def make(name: str, work: Workload, given: Given) -> System:
    """The system, ready for its first round."""
    return import_module(SYSTEMS[name].module).make(work, given)
