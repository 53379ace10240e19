"""Rounds with the steps in the span of their samples, against the same rounds on the weights.

    python -m benchmarks.span

784 features, 10 classes. pFedMe: R = 20 mini-batches of 20, K inner steps on each; FedAvg: exact gradient steps.
"""

import argparse
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.timing import medians, simulation
from idiolect.client import span
from idiolect.runtime.simulate import Simulation

PFEDME = {"name": "pfedme", "rate": 0.01, "inner_rate": 0.02}
FULL = {"name": "fedavg", "rate": 0.01, "batch_size": 0, "local_steps": 50}
MLP: dict[str, Any] = {"name": "mlp", "hidden": [100]}
CASES: list[tuple[str, dict[str, Any], Any, int]] = [
    ("pFedMe, MLR, K = 5", PFEDME, "mlr", 2600),
    ("pFedMe, MLP 100, K = 5", PFEDME, MLP, 2600),
    ("pFedMe, MLP 100, K = 10", {**PFEDME, "inner_steps": 10}, MLP, 2600),
    ("FedAvg, MLP 200, 50 steps on all of 600 samples", FULL, {"name": "mlp", "hidden": [200]}, 600),
]


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=7, help="timed rounds")
    args = parser.parse_args()
    console, smallest = Console(), span.SMALLEST
    table = Table(title="5 clients a round, seconds a round")
    for column in ("work", "on the weights", "in the span", "ratio"):
        table.add_column(column, justify="left" if column == "work" else "right")
    for title, spec, model, samples in CASES:

        def made(spec: dict[str, Any] = spec, model: Any = model, samples: int = samples) -> Simulation:
            sim = simulation(spec, model, (784,), classes=10, clients=20, samples=samples, cohort=5)
            sim.advance(sim.init(0), 1)  # compiled here, under the limit that holds now
            return sim

        span.SMALLEST = 10**12
        plain = made()
        span.SMALLEST = smallest
        one, other = medians([plain, made()], ["weights", "span"], args.repeats, lambda _: None)
        table.add_row(title, f"{one:.4f}", f"{other:.4f}", f"{one / other:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
