"""Scores of large models on few rows, where moving models would take longer than computing with them.

    python -m benchmarks.scores ditto

200 clients are scored on 12 test rows each with every named model of a method: MLP 784-1000-10, a device per core.
"""

import argparse
import resource
import time

import numpy as np

from idiolect.algorithms.registry import ALGORITHMS, build
from idiolect.data import from_arrays
from idiolect.runtime.devices import use_cores
from idiolect.runtime.evaluate import Evaluator
from idiolect.study.spec.assemble import problem_of

CLIENTS, ROWS, FEATURES, REPEATS = 200, 24, 784, 7


def main() -> None:
    """Print the median seconds of an evaluation, and the process's most memory before and after."""
    parser = argparse.ArgumentParser(description="Seconds and memory of an evaluation of 200 clients.")
    parser.add_argument("method", choices=sorted(ALGORITHMS))
    method = parser.parse_args().method
    use_cores()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((CLIENTS, ROWS, FEATURES), np.float32)
    y = rng.integers(0, 10, (CLIENTS, ROWS))
    clients = {f"client {i + 1}": (x[i], y[i]) for i in range(CLIENTS)}
    data = from_arrays(clients, task="classification", validation=0.0, test=0.5)
    simulation = problem_of(data, {"name": "mlp", "hidden": [1000]}).simulation(build({"name": method}), cohort=2)
    state, evaluator = simulation.advance(simulation.init(0), 1), Evaluator(simulation)
    before, times = _peak(), list[float]()
    for _ in range(REPEATS + 1):  # the first one compiles
        began = time.perf_counter()
        evaluator(state)
        times.append(time.perf_counter() - began)
    print(
        f"{method}: {1e3 * float(np.median(times[1:])):.0f} ms; most memory before the first evaluation "
        f"{before:.0f} MB, after the last {_peak():.0f} MB"
    )


def _peak() -> float:
    """The most megabytes that the process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    main()
