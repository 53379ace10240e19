"""A round of boosted trees on the natural tables: milliseconds of one run, and its size.

    python -m benchmarks.trees                        # every table of benchmarks.natural_tables
    python -m benchmarks.trees --only verbal,movies

The settings are those of the advice. The rounds that make the bins are not measured.
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
from rich.console import Console
from rich.table import Table

from benchmarks.natural_tables import TABLES
from idiolect.algorithms import registry
from idiolect.core.errors import unknown
from idiolect.data import from_table
from idiolect.data.federated import FederatedData
from idiolect.runtime.devices import Devices
from idiolect.study.advice.contestants import contestant
from idiolect.study.spec.assemble import problem_of

ROUNDS = 60
"""Measured at a time."""


def federation(name: str) -> FederatedData:
    """A natural table, divided as the advice divides it."""
    table = TABLES[name]
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.csv"
        table.load().to_csv(path, index=False)
        return from_table(
            path, table.client, table.label, task=table.task, minimum=table.minimum, test=0.25, validation=0.2
        )


def milliseconds(data: FederatedData, repeats: int = 3) -> float:
    """The least time of a round of growing trees, on one device."""
    settings = contestant("boosted-intercept", data, 1.0, 60).settings[0]
    algorithm = registry.build({"name": "boosted-intercept", **settings})
    problem = problem_of(data, {"name": "linear" if data.task == "regression" else "mlr", "init": "zeros"})
    simulation = problem.simulation(algorithm, devices=Devices(jax.local_devices()[:1]))
    state, times = simulation.advance(simulation.init(0), 8), []
    for _ in range(repeats):
        began = time.perf_counter()
        state = simulation.advance(state, ROUNDS)
        jax.block_until_ready(state.shared)
        times.append((time.perf_counter() - began) / ROUNDS)
    return 1000 * min(times)


def main() -> None:
    """Measure the tables one after the other."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(TABLES), help="tables, with commas")
    names = parser.parse_args().only.split(",")
    for name in names:
        if name not in TABLES:
            raise unknown("table", name, TABLES)
    shown = Table(box=None)
    for column in ("table", "clients", "training rows", "features", "ms per round"):
        shown.add_column(column, justify="left" if column == "table" else "right")
    for name in names:
        data = federation(name)
        size = (f"{data.num_clients}", f"{data.train.count:,}", f"{data.feature_shape[0]}")
        shown.add_row(name, *size, f"{milliseconds(data):.2f}")
    Console().print(shown)


if __name__ == "__main__":
    main()
