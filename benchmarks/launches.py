"""Programs of one round each: how many take much longer than the fastest.

    python -m benchmarks.launches

FedAvg trains MLP 500-100-2 for 5 epochs in batches of 20, on 10 of 25 clients of 2,000 rows, a device for each core.
"""

import time

import jax
import numpy as np

from idiolect.algorithms.registry import build
from idiolect.data import from_arrays
from idiolect.runtime.devices import use_cores
from idiolect.study.spec.assemble import problem_of

CLIENTS, ROWS, FEATURES, LAUNCHES = 25, 2_000, 500, 60


def main() -> None:
    """Print the median and the mean seconds of a round, and how many took 1.5 times the least or more."""
    use_cores()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((CLIENTS, ROWS, FEATURES), np.float32)
    y = (x[:, :, 0] > 0).astype(np.int32)
    clients = {f"client {i + 1}": (x[i], y[i]) for i in range(CLIENTS)}
    data = from_arrays(clients, task="classification", validation=0.0, test=0.01)
    method = build({"name": "fedavg", "rate": 0.05, "batch_size": 20, "local_steps": 5 * ROWS // 20})
    simulation = problem_of(data, {"name": "mlp", "hidden": [100]}).simulation(method, cohort=10)
    state = simulation.advance(simulation.init(0), 1)
    times: list[float] = []
    for _ in range(LAUNCHES):
        began = time.perf_counter()
        state = simulation.advance(state, 1)
        jax.block_until_ready(state.shared)
        times.append(time.perf_counter() - began)
    slow = sum(one > 1.5 * min(times) for one in times)
    print(f"median {np.median(times):.3f} s, mean {np.mean(times):.3f} s, {slow} of {LAUNCHES} slow")


if __name__ == "__main__":
    main()
