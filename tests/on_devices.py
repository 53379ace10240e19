"""Small federations on whatever devices this process has.

`python -m tests.on_devices FILE.npz SAMPLING ..` keeps the numbers.
"""

import sys
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from idiolect.algorithms.registry import build
from idiolect.metrics.registry import METRICS
from idiolect.runtime import distributed
from idiolect.runtime.devices import is_leader
from idiolect.runtime.evaluate import Evaluator
from tests.federations import classification, flat

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


def exact() -> np.ndarray:
    """The shared model after two rounds of `EXACT`."""
    fedavg = build({"name": "fedavg", "local_steps": 50, "rate": 0.01, "batch_size": 0})
    sim = classification(SIZES, features=500, hidden=10).simulation(fedavg, cohort=5, block=1)
    return flat(sim.advance(sim.init(3), 2).shared)


def numbers(samplings: Iterable[str] = SAMPLINGS) -> dict[str, np.ndarray]:
    """The state after three rounds for each method and way to sample; of one way, test loss and metrics."""
    problem = classification(SIZES)
    found = {EXACT: exact()}
    for name, spec in METHODS.items():
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


if __name__ == "__main__":
    distributed.join()
    found = numbers(sys.argv[2:])
    if is_leader():
        np.savez(sys.argv[1], devices=jax.device_count(), processes=jax.process_count(), **found)
