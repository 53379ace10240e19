"""Seconds of a comparison whose table has grown a little since the programs were compiled.

    python -m benchmarks.grown --before CHECKOUT

Four made tables of 15 clients with 40 to 400 rows each, eight numbers and two classes. Each is compared twice, then
with 1 % and with 5 % more rows at random clients. All calls for one table share a cache folder of their own.
With `--before CHECKOUT`, calls of another checkout take turns with these. One seed decides everything.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import mean

import numpy as np
import pandas as pd

from benchmarks.start import checkouts, seconds_to_the_first_round

CLIENTS, FEATURES = 15, 8
STEPS = {"first call": 0.0, "second call": 0.0, "1 % more rows": 0.01, "5 % more rows": 0.05}
"""How many more rows the table has, as a share; one call after the other."""
COLUMNS = ["--client", "client", "--label", "y"]
METHODS = ["--methods", "fedavg,ditto,fedrep,local", "--rate", "0.1", "--rounds", "10", "--seeds", "2"]


def table(seed: int, more: float) -> pd.DataFrame:
    """A table with `more` of its rows in addition; a client's first rows are the same however many there are."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(40, 400, CLIENTS)
    sizes += rng.multinomial(int(sizes.sum() * more), sizes / sizes.sum())
    parts = list[pd.DataFrame]()
    for client, size in enumerate(sizes):
        own = np.random.default_rng((seed, client))
        w, x = own.normal(size=FEATURES), own.normal(size=(size, FEATURES))
        columns = {f"x{i}": x[:, i] for i in range(FEATURES)}
        parts.append(pd.DataFrame({**columns, "y": np.where(x @ w > 0, "yes", "no"), "client": f"client {client}"}))
    return pd.concat(parts)


def main() -> None:
    """Measure and print one line for each checkout and step."""
    parser = argparse.ArgumentParser(description="Seconds of a comparison whose table has grown a little.")
    parser.add_argument("--tables", type=int, default=4, help="tables, each with two calls before it grows")
    parser.add_argument("--before", type=Path, help="another checkout, whose calls take turns with these")
    given = parser.parse_args()
    turns = checkouts(given.before)
    found = {(name, step): list[tuple[float, int]]() for name in turns for step in STEPS}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.tables):
            for step, more in STEPS.items():
                file = Path(folder, f"table{seed}.csv")
                table(seed, more).to_csv(file, index=False)
                for name, checkout in turns.items():
                    cache = Path(folder, f"{name}{seed}")
                    kept = programs(cache)
                    command = ["compare", "--data", str(file), *COLUMNS, *METHODS]
                    _, seconds = seconds_to_the_first_round(command, checkout, cache)
                    found[name, step].append((seconds, programs(cache) - kept))
                    print(f"{name}, table {seed}, {step}: {found[name, step][-1]}", file=sys.stderr, flush=True)
    for (name, step), calls in found.items():
        times, compiled = [time for time, _ in calls], [count for _, count in calls]
        print(f"{name}, {step}: {mean(times):.1f} s ({min(times):.1f} to {max(times):.1f}), programs {compiled}")


def programs(cache: Path) -> int:
    """The number of kept programs."""
    return sum(file.name.startswith("jit_") and file.name.endswith("-cache") for file in cache.rglob("*"))


if __name__ == "__main__":
    main()
