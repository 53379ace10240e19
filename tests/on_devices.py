"""Small federations on whatever devices this process has; `python -m tests.on_devices FILE.npz` keeps the numbers."""

import sys
from typing import Any

import jax
import numpy as np

from idiolect import distributed
from idiolect.algorithms.registry import build
from idiolect.devices import is_leader
from idiolect.evaluate import Evaluator
from tests.federations import classification, flat

METHODS: dict[str, dict[str, Any]] = {
    "pfedme": {"name": "pfedme", "local_steps": 3, "inner_steps": 2, "batch_size": 4},
    "fedavg": {"name": "fedavg", "local_steps": 4, "batch_size": 4},
    "scaffold": {"name": "scaffold", "local_steps": 4, "batch_size": 4},
    "ditto": {"name": "ditto", "local_steps": 4, "batch_size": 0},
    "afl": {"name": "afl", "local_steps": 4, "batch_size": 4},
    "pflego": {"name": "pflego", "head": "second", "local_steps": 4},
    "fedu": {"name": "fedu", "graph": "ring", "local_steps": 4, "batch_size": 4},
    "local": {"name": "local", "local_steps": 4, "batch_size": 4},
}
SAMPLINGS = {"fixed": 5, "binomial": 3.5}


def numbers() -> dict[str, np.ndarray]:
    """The state after three rounds and the test loss and table of classes, for each method and way to sample."""
    problem = classification((9, 1, 14, 4, 6, 3, 8))
    found: dict[str, np.ndarray] = {}
    for name, spec in METHODS.items():
        evaluator: Evaluator | None = None
        for sampling, cohort in SAMPLINGS.items():
            sim = problem.simulation(build(spec), cohort=cohort, sampling=sampling, block=2, rounds=3)
            state = sim.advance(sim.init(3), 3)
            evaluator = evaluator or Evaluator(sim)  # how a state came about is nothing to the evaluation
            scores = evaluator(state)
            found[f"{name} {sampling} state"] = flat((state.shared, state.private))
            found[f"{name} {sampling} loss"] = np.stack([s.loss for s in scores])
            tables = [s.classes for s in scores if s.classes is not None]
            found[f"{name} {sampling} classes"] = np.stack(tables).astype(float)
    return found


if __name__ == "__main__":
    distributed.join()
    found = numbers()
    if is_leader():
        np.savez(sys.argv[1], devices=jax.device_count(), processes=jax.process_count(), **found)
