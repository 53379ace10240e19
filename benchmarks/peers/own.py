"""idiolect itself, in a process like any other system's, on all cores."""

from contextlib import suppress

import jax
import numpy as np

from benchmarks.beginning import SEED, simulated, to_torch
from benchmarks.peers import System
from benchmarks.samples import Given
from benchmarks.workloads import Workload
from idiolect.algorithms.fedu import Coupled
from idiolect.core.errors import ConfigError
from idiolect.runtime.devices import use_cores
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.round import State


class Rounds:
    """A simulation and its state."""

    gradients = None

    def __init__(self, work: Workload, given: Given) -> None:
        self.work, self.sim = work, simulated(work, alike=given.alike)
        self.state = self.sim.init(SEED)

    def rounds(self, count: int) -> None:
        """As one compiled loop."""
        self.state = jax.block_until_ready(self.sim.advance(self.state, count))

    def result(self) -> list[np.ndarray]:
        """What the server holds, and the private parts after it."""
        shared = self.state.shared
        models = shared.params if isinstance(shared, Coupled) else shared  # without the graph of FedU's server
        leaves = jax.tree.leaves((models, self.state.private))
        return to_torch(self.work.model, leaves)

    def close(self) -> None:
        """Nothing to let go of."""


class Scores(Rounds):
    """The evaluation of everyone's own model."""

    def __init__(self, work: Workload, given: Given) -> None:
        super().__init__(work, given)
        state = self.state
        own = jax.tree.unflatten(jax.tree.structure(state.private), [jax.numpy.asarray(w) for w in given.weights])
        self.state = self.sim.devices.place(State(state.shared, own, state.round, state.seed, state.fault))
        self.evaluator = Evaluator(self.sim)

    def rounds(self, count: int) -> None:
        """One evaluation after the other."""
        for _ in range(count):
            self.scores = self.evaluator(self.state, ("local",), ("test",))[0]

    def result(self) -> list[np.ndarray]:
        """[losses, accuracies], each (clients,)."""
        return [self.scores.loss, self.scores.values["accuracy"]]


def make(work: Workload, given: Given) -> System:
    """The simulation of a workload, as the command line runs it: each core a device."""
    with suppress(ConfigError):  # inside a program that computed with JAX before, its devices stay as they are
        use_cores()
    return (Scores if work.evaluates else Rounds)(work, given)
