"""One sweep against the same runs one after the other, side by side.

    python -m benchmarks.sweeps

FedAvg, 20 clients of 60 samples with 32 features and 10 classes, 10 a round, 5 local steps on mini-batches of 20; 8
runs (4 rates x 2 seeds). One after the other: one simulation for each rate, as `compare` has. Training only:
evaluation and files left out. First the time to the end with compilation, then the median of rounds once compiled.
"""

import argparse
import statistics
import time
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

from benchmarks.timing import simulation
from idiolect.runtime.program import Program, member_of

RATES, SEEDS = (0.01, 0.03, 0.1, 0.3), (0, 1)
MODELS: dict[str, Any] = {"MLR 32-10": "mlr", "MLP 32-200-10": {"name": "mlp", "hidden": [200]}}


def timed(model: Any, rounds: int, repeats: int, block: int | None) -> tuple[float, float, float, float]:
    """Seconds with compilation (sweep, one by one), then of `rounds` compiled rounds of all runs (the same)."""
    options: Any = {"classes": 10, "clients": 20, "samples": 60, "cohort": 10}
    method = {"name": "fedavg", "local_steps": 5, "batch_size": 20}

    def make() -> list[Any]:
        return [simulation({**method, "rate": rate}, model, (32,), **options) for rate in RATES]

    sims = make()
    runs = [(sim, seed) for sim in sims for seed in SEEDS]
    rows = range(len(runs))
    began = time.perf_counter()
    shared = sims[0]  # one data set for all members
    members = [member_of(s, ("test",)) for s, _ in runs]
    first = member_of(shared, ("test",))
    members = [type(first)(m.plan, first.training, first.models_from, first.scored) for m in members]
    program = Program([s for s, _ in runs], members, block=block)
    seeds = [seed for _, seed in runs]
    states = program.start([s for s, _ in runs], seeds, [shared.params] * len(runs))
    capacity = program.capacity(seeds, 10 * rounds)
    states = jax.block_until_ready(program.advance(rows, states, rounds, capacity))
    whole = time.perf_counter() - began
    began = time.perf_counter()
    alone = [sim.advance(sim.init(seed), rounds) for sim, seed in runs]
    jax.block_until_ready(alone)
    single = time.perf_counter() - began
    swept, serial = [], []
    end = rounds
    for _ in range(repeats):
        end += rounds
        began = time.perf_counter()
        states = jax.block_until_ready(program.advance(rows, states, end, capacity))
        swept.append(time.perf_counter() - began)
        began = time.perf_counter()
        alone = [sim.advance(state, rounds) for (sim, _), state in zip(runs, alone, strict=True)]
        jax.block_until_ready(alone)
        serial.append(time.perf_counter() - began)
    return whole, single, statistics.median(swept), statistics.median(serial)


def main() -> None:
    """Print one line for each model and block."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    table = Table(title=f"8 runs, {given.rounds} rounds: seconds, and runs one after the other / one sweep")
    columns = (
        "model",
        "block",
        "sweep, with compiling",
        "one by one",
        "ratio",
        "sweep, compiled",
        "one by one",
        "ratio",
    )
    for column in columns:
        table.add_column(column, justify="left" if column == "model" else "right")
    for name, model in MODELS.items():
        for block in (1, 8):
            a, b, c, d = timed(model, given.rounds, given.repeats, block)
            numbers = (f"{v:.2f}" for v in (a, b, b / a, c, d, d / c))
            table.add_row(name, str(block), *numbers)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
