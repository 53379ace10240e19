"""A million clients against a thousand: seconds a round, and the memory of the process.

    python -m benchmarks.population
    python -m benchmarks.population --method ditto --rounds 40

Synthetic clients made from their numbers, MLR 60-10, 100 clients a round, private states in a file, a commit to disk
after each measured stretch. Each population runs in a process of its own; the processes take turns.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import equinox as eqx
import jax
from rich.console import Console
from rich.table import Table

from idiolect.algorithms.registry import build
from idiolect.client.objective import objective_of
from idiolect.core.random import model_key
from idiolect.data.sets.synthetic import synthetic_population
from idiolect.models import build as build_model
from idiolect.runtime.devices import use_cores
from idiolect.runtime.private_rows import PrivateRows
from idiolect.runtime.simulate import Simulation

COHORT = 100


def peak_memory() -> float:
    """The most that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def serve(clients: int, method: str) -> None:
    """Run as many rounds as each line of the input says, and answer with the seconds of one and the peak memory."""
    use_cores()
    data = synthetic_population(clients=clients)
    model = build_model("mlr", data.feature_shape, data.num_outputs, data.task, model_key(0))
    params = eqx.filter(model, eqx.is_inexact_array)
    objective = objective_of(model, data.task)
    sim = Simulation(data, objective, params, build({"name": method}), cohort=COHORT, rounds=10**6)
    with tempfile.TemporaryDirectory() as folder:
        state = sim.init(0, rows=Path(folder) / "rows")
        assert isinstance(state.private, PrivateRows)
        for line in sys.stdin:
            began = time.perf_counter()
            state = sim.advance(state, int(line))
            jax.block_until_ready(state.shared)
            state.private.commit(b"")
            print((time.perf_counter() - began) / int(line), peak_memory(), flush=True)
        state.private.close()


class Population:
    """A process that holds one population."""

    def __init__(self, clients: int, method: str) -> None:
        arguments = ["-m", "benchmarks.population", "--serve", str(clients), "--method", method]
        self.process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def rounds(self, count: int) -> tuple[float, float]:
        """(seconds a round, peak MB so far)."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        seconds, memory = (float(part) for part in self.process.stdout.readline().split())
        return seconds, memory

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--method", default="fedper", help="a method with private states")
    parser.add_argument("--rounds", type=int, default=40, help="rounds of a measured stretch")
    parser.add_argument("--repeats", type=int, default=7, help="measured stretches")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve is not None:
        serve(args.serve, args.method)
        return
    sizes = (1_000, 1_000_000)
    populations = [Population(clients, args.method) for clients in sizes]
    for population in populations:
        population.rounds(5)  # compiled here
    measured = [[p.rounds(args.rounds) for p in populations] for _ in range(args.repeats)]
    table = Table(title=f"{args.method}, {COHORT} clients a round")
    for column in ("clients", "s a round", "ratio", "peak MB"):
        table.add_column(column, justify="right")
    columns = list(zip(*measured, strict=True))
    medians = [statistics.median(seconds for seconds, _ in column) for column in columns]
    for clients, median, column in zip(sizes, medians, columns, strict=True):
        table.add_row(f"{clients:,}", f"{median:.4f}", f"{median / medians[0]:.2f}", f"{column[-1][1]:.0f}")
    Console().print(table)
    for population in populations:
        population.close()


if __name__ == "__main__":
    main()
