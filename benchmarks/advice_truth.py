"""Draw federations with a known truth, ask for advice, and count how often it is right.

python -m benchmarks.advice_truth --draws 100 -o advice-truth.csv

The bars are left out, since a verdict does not depend on them. Each line of the file is one draw; a run that was
stopped continues behind the last line. The table at the end counts the verdicts of each truth.
"""

import argparse
import csv
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float

from idiolect.data import from_arrays
from idiolect.data.federated import FederatedData
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.study.advice.advise import advise

WIDTH, CLIENTS, ROWS = 5, 20, 80
COLUMNS = ("truth", "draw", "outcome", "method", "right", "harmful", "seconds")


def _sigmoid(z: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    return 1 / (1 + np.exp(-z))


def _client(
    rng: np.random.Generator,
    rows: int,
    weights: Float[np.ndarray, "d"],
    intercept: float = 0.0,
    centre: Float[np.ndarray, "d"] | float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """(x, y) of one client: P(y = 1) = sigmoid(weights . x + intercept), x around `centre`."""
    x = rng.normal(size=(rows, WIDTH)) + centre
    return x.astype("f4"), (rng.random(rows) < _sigmoid(x @ weights + intercept)).astype(int)


def _labels_first(
    rng: np.random.Generator, rows: int, share: float, shift: Float[np.ndarray, "d"]
) -> tuple[np.ndarray, np.ndarray]:
    """(x, y) drawn label first: only P(y = 1) = share differs between clients, P(x | y) is the same."""
    y = (rng.random(rows) < share).astype(int)
    return (rng.normal(size=(rows, WIDTH)) + np.where(y[:, None] == 1, shift, -shift) / 2).astype("f4"), y


def _strong(rng: np.random.Generator, size: float = 2.0) -> Float[np.ndarray, "d"]:
    """A direction of this length."""
    weights = rng.normal(size=WIDTH)
    return size * weights / np.linalg.norm(weights)


Clients = list[tuple[np.ndarray, np.ndarray]]


def alike(rng: np.random.Generator) -> Clients:
    """All clients have one relation and few rows: federate."""
    w = _strong(rng)
    return [_client(rng, ROWS, w) for _ in range(CLIENTS)]


def worlds_apart(rng: np.random.Generator) -> Clients:
    """Every client has a relation of its own, and rows enough: do not federate."""
    return [_client(rng, 240, _strong(rng, 4.0)) for _ in range(CLIENTS)]


def two_groups(rng: np.random.Generator) -> Clients:
    """Two groups have opposite relations: federate, within groups."""
    w = _strong(rng)
    return [_client(rng, ROWS, w if i % 2 else -w) for i in range(CLIENTS)]


def tiny_client(rng: np.random.Generator) -> Clients:
    """As alike, with one client of 12 rows: federate."""
    w = _strong(rng)
    return [_client(rng, 12 if i == 0 else ROWS, w) for i in range(CLIENTS)]


def label_shift(rng: np.random.Generator) -> Clients:
    """Only the share of the labels differs: federate, with own intercepts."""
    shift = _strong(rng, 1.5)
    return [_labels_first(rng, ROWS, share, shift) for share in np.linspace(0.1, 0.9, CLIENTS)]


def covariate_shift(rng: np.random.Generator) -> Clients:
    """Only the features' centres differ: federate."""
    w = _strong(rng)
    return [_client(rng, ROWS, w, centre=rng.normal(size=WIDTH)) for _ in range(CLIENTS)]


def shifted_intercepts(rng: np.random.Generator) -> Clients:
    """One relation with intercepts of deviation 2: federate, with own intercepts."""
    w = _strong(rng)
    return [_client(rng, ROWS, w, intercept=2 * rng.normal()) for _ in range(CLIENTS)]


def some_gain(rng: np.random.Generator) -> Clients:
    """Sixteen clients of 40 rows share a relation, four of 240 rows have their own: federate, personal models."""
    w = _strong(rng)
    return [_client(rng, 240, _strong(rng, 4.0)) if i < 4 else _client(rng, 40, w) for i in range(CLIENTS)]


TRUTHS: Mapping[Callable[[np.random.Generator], Clients], tuple[str, ...]] = {
    alike: ("shared", "personal"),
    worlds_apart: ("alone",),
    two_groups: ("personal",),
    tiny_client: ("shared", "personal"),
    label_shift: ("shared", "personal"),
    covariate_shift: ("shared", "personal"),
    shifted_intercepts: ("personal",),
    some_gain: ("personal",),
}
"""Each truth and the verdicts that are right."""


def federation(truth: Callable[[np.random.Generator], Clients], draw: int) -> FederatedData:
    """The federation of a truth's draw. The clients' order is random, and one number decides everything."""
    rng = np.random.default_rng([draw, *map(ord, truth.__name__)])
    clients = truth(rng)
    order = rng.permutation(len(clients))
    return from_arrays({f"c{i:02}": clients[place] for i, place in enumerate(order)}, task="classification")


def main() -> None:
    """Run what is missing in the file, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100, help="draws of each truth")
    parser.add_argument("--splits", type=int, default=8, help="divisions of each advice")
    parser.add_argument("--only", default="", help="one truth")
    parser.add_argument("-o", "--out", type=Path, required=True, help="the CSV file")
    options = parser.parse_args()
    use_compilation_cache()
    done: list[dict[str, str]] = []
    if options.out.is_file():
        with options.out.open(newline="") as file:
            done = list(csv.DictReader(file))
    finished = {(row["truth"], int(row["draw"])) for row in done}
    with options.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not done:
            writer.writeheader()
        for draw in range(options.draws):
            for truth, right in TRUTHS.items():
                name = truth.__name__
                if (name, draw) in finished or (options.only and name != options.only):
                    continue
                begun = time.perf_counter()
                found = advise(federation(truth, draw), splits=options.splits, with_baselines=False)
                outcome = found.decision.outcome
                row = {
                    "truth": name,
                    "draw": str(draw),
                    "outcome": outcome,
                    "method": found.decision.method,
                    "right": str(int(outcome in right)),
                    "harmful": str(int(outcome == "alone" and "alone" not in right)),
                    "seconds": f"{time.perf_counter() - begun:.1f}",
                }
                writer.writerow(row)
                file.flush()
                done.append(row)
    print(table(done))


def table(rows: list[dict[str, str]]) -> str:
    """The counts of each truth, in Markdown."""
    lines = [
        "| truth | draws | right | wrongly 'do not federate' | inconclusive |",
        "|---|---:|---:|---:|---:|",
    ]
    for truth in TRUTHS:
        own = [row for row in rows if row["truth"] == truth.__name__]
        counts = [sum(int(row[key]) for row in own) for key in ("right", "harmful")]
        unclear = sum(row["outcome"] == "unclear" for row in own)
        lines.append(f"| {truth.__name__.replace('_', ' ')} | {len(own)} | {counts[0]} | {counts[1]} | {unclear} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
