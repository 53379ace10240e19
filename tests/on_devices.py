"""Small federations on whatever devices this process has.

`python -m tests.on_devices FILE.npz SAMPLING,.. METHOD,..` keeps the numbers.
"""

import sys
from collections.abc import Iterable
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.registry import build
from idiolect.client.objective import objective_of
from idiolect.core import tree
from idiolect.metrics.registry import METRICS
from idiolect.runtime import devices, distributed
from idiolect.runtime.devices import is_leader
from idiolect.runtime.evaluate import Evaluator
from tests.federations import Problem, Tanh, classification, flat

METHODS: dict[str, dict[str, Any]] = {
    "pfedme": {"name": "pfedme", "local_steps": 3, "inner_steps": 2, "batch_size": 4},
    "scaffold": {"name": "scaffold", "local_steps": 4, "batch_size": 4},
    "ditto": {"name": "ditto", "local_steps": 4, "batch_size": 0},
    "afl": {"name": "afl", "local_steps": 4, "batch_size": 4},
    "pflego": {"name": "pflego", "head": "second", "local_steps": 4},
    "fedu": {"name": "fedu", "graph": "ring", "local_steps": 4, "batch_size": 4},
}
EXACT = "fedavg in the span of all samples"  # of wide samples, compiled for several sizes of clients
SIZES = (9, 1, 14, 4, 6, 3, 8)
SAMPLINGS = {"fixed": 5, "binomial": 3.5}
EVALUATED = "binomial"
BOTH = ("pfedme", "fedu")  # methods that are also run with the other way to sample, and measured by all metrics
METRICS_OF_CLASSES = [metric for metric in METRICS.values() if metric.task == "classification"]


TOGETHER: dict[str, dict[str, Any]] = {
    "full": {"name": "fedavg", "local_steps": 4, "batch_size": 0},
    "batches": {"name": "fedavg", "local_steps": 4, "batch_size": 5},
    "features": {"name": "pflego", "head": "second", "local_steps": 4},
    "loss": {"name": "ifca", "local_steps": 2, "batch_size": 0},
    "curvature": {"name": "perfedavg", "variant": "exact", "local_steps": 3, "batch_size": 5},
}
"""Methods whose clients are computed by several devices each."""
COHORTS = {"fixed": 2, "binomial": 3.5}
"""Of 8 devices, 4 compute a client of the first, 2 of the second."""


def exact() -> np.ndarray:
    """The shared model after two rounds of `EXACT`."""
    fedavg = build({"name": "fedavg", "local_steps": 50, "rate": 0.01, "batch_size": 0})
    sim = classification(SIZES, features=500, hidden=10).simulation(fedavg, cohort=5, block=1)
    return flat(sim.advance(sim.init(3), 2).shared)


def numbers(samplings: Iterable[str] = SAMPLINGS, methods: Iterable[str] = METHODS) -> dict[str, np.ndarray]:
    """The state after three rounds for each method and way to sample; of one way, test loss and metrics."""
    problem = classification(SIZES)
    found = {EXACT: exact()}
    for name, spec in ((name, METHODS[name]) for name in methods):
        for sampling in samplings if name in BOTH else {EVALUATED}.intersection(samplings):
            cohort = SAMPLINGS[sampling]
            sim = problem.simulation(build(spec), cohort=cohort, sampling=sampling, block=2, rounds=3)
            state = sim.advance(sim.init(3), 3)
            found[f"{name} {sampling} state"] = flat((state.shared, state.private))
            if sampling == EVALUATED:  # how a state came about is nothing to the evaluation
                metrics = METRICS_OF_CLASSES if name in BOTH else METRICS_OF_CLASSES[:1]
                scores = Evaluator(sim, metrics=metrics)(state)
                found[f"{name} loss"] = np.stack([s.loss for s in scores])
                each = [[*s.values[m.name], s.pooled[m.name]] for s in scores for m in metrics]
                found[f"{name} metrics"] = np.nan_to_num(np.array(each))
    return found


class Twice(FedAvg):
    """The loss after a step of gradient descent, descended: the derivative of a gradient, backwards."""

    def local(self, view: Any, private: Any, client: Any, key: Any) -> Any:
        """One step of it."""
        batch, whole = client.batch(key, 0, 5, "fresh"), client.undivided
        if client.federation.together is not None:
            with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
                jax.grad(lambda w: sum(map(jnp.sum, jax.tree.leaves(client.grad(w, batch)))))(view)

        def ahead(w: Any) -> Any:
            return client.loss(tree.add_scaled(w, -0.3, whole.grad(w, batch)), batch)

        return tree.add_scaled(view, -0.5, jax.grad(ahead)(view)), private


class Counted(FedAvg):
    """The number of samples that the model can answer, in place of a trained model."""

    def local(self, view: Any, private: Any, client: Any, key: Any) -> Any:
        """Of one client."""
        return jax.tree.map(lambda leaf: leaf + client.answered(view), view), private


class Positive(Tanh):
    """A model that can only answer samples whose first feature is positive."""

    def usable(self, x: Any) -> Any:
        """1 or 0."""
        return (x[0] > 0).astype(float)


def together(sampling: str) -> dict[str, np.ndarray]:
    """The state after three rounds of each method, with every gradient divided by the devices of its client.

    "NAME devices" is how many these were.
    """
    problem = classification(SIZES)
    model = Positive(*jax.tree.leaves(problem.params))
    selective = Problem(problem.data, objective_of(model, "classification"), model)
    found: dict[str, np.ndarray] = {}
    methods = {name: build(spec) for name, spec in TOGETHER.items()}
    methods |= {"selective": methods["full"], "rows": methods["batches"]}
    methods |= {"backwards": Twice(), "counted": Counted()}
    cohort = COHORTS[sampling]
    for name, method in methods.items():
        with patch.object(devices, "WORTH", 1e-3):
            own = selective if name in ("selective", "counted") else problem
            block = 1 + (name == "full")
            sim = own.simulation(method, cohort=cohort, sampling=sampling, block=block, rounds=3)
        of, sim.tile = sim.devices, 2  # several tiles for each device
        assert of.together is None or (of.together.devices, len(of)) == {2: (4, 2), 3.5: (2, 4)}[cohort]
        if name == "rows" and of.together is not None:  # batches of 5 stay whole, a client of 14 is divided
            of.together = of.together._replace(least=6)
        state = sim.advance(sim.init(3), 3)
        found[f"{name} state"] = flat((state.shared, state.private))
        found[f"{name} loss"] = np.stack([s.loss for s in Evaluator(sim)(state)])
        found[f"{name} devices"] = np.array(1 if of.together is None else of.together.devices)
    return found


if __name__ == "__main__":
    distributed.join()
    what, names = sys.argv[2], sys.argv[3].split(",")
    found = together(names[0]) if what == "together" else numbers(what.split(","), names)
    if is_leader():
        np.savez(sys.argv[1], devices=jax.device_count(), processes=jax.process_count(), **found)
