"""A large table whose truth is known, and how long idiolect takes to read it.

    python -m benchmarks.large_table large.csv                     # 200,000 rows, 40 hospitals, 60 columns
    python -m benchmarks.large_table large.csv --truth             # scores of the true probabilities on test rows
    python -m benchmarks.large_table large.csv --pairs 5           # reading beside pandas.read_csv

Every call makes the file if it is missing. The label is 1 for 2 % of the rows. Its log-odds are linear in the
features, with an intercept per hospital, and a little more: slopes of a few features differ between hospitals, two
features interact and one acts through its square. One seed decides everything.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from rich.console import Console
from scipy.optimize import brentq
from scipy.special import expit

from idiolect.core.errors import require
from idiolect.data import from_table, table_partition
from idiolect.data.schema.schema import Schema
from idiolect.data.sets.pool import read_pool
from idiolect.metrics.auroc import AUROC
from idiolect.metrics.base import measure_rows
from idiolect.metrics.probabilities import LogLoss

CLIENT, LABEL = "hospital", "died"
WORDS = {
    "sex": ("female", "male"),
    "ward": ("surgery", "internal", "intensive", "emergency", "other"),
    "admission": ("planned", "urgent", "transfer"),
    "blood_group": ("0", "A", "AB", "B"),
    "insurance": tuple(f"plan {letter}" for letter in "abcdefghijkl"),
}
"""The columns of words, and the words of each; the first are the most frequent."""

MISSING = 12
"""Columns of numbers in which values are missing, in 2 to 24 % of the rows."""


@dataclass(frozen=True, eq=False)
class LargeTable:
    """A table with its truth. probability: of label 1 in each row, given what the row shows."""

    frame: pd.DataFrame
    probability: Float[np.ndarray, "rows"]


def large_table(
    rows: int = 200_000, hospitals: int = 40, columns: int = 60, positive: float = 0.02, seed: int = 0
) -> LargeTable:
    """Draw a table of `columns` features, with the hospital and the label in two further columns.

    A missing value adds nothing to the log-odds, so the probability is a function of what the table shows.

    Args:
        rows: Number of rows. Each hospital has at least 20 of them; sizes differ by a factor of about ten.
        hospitals: Number of clients.
        columns: Number of feature columns, of which five hold words.
        positive: The mean of the true probabilities.
        seed: Decides everything.

    Raises:
        ConfigError: If there are too few rows or columns.
    """
    fewest = 20
    require(rows >= fewest * hospitals, f"rows = {rows} must be at least {fewest} per hospital")
    require(columns >= MISSING + len(WORDS), f"columns = {columns} must be at least {MISSING + len(WORDS)}")
    rng = np.random.default_rng(seed)
    share = rng.lognormal(0, 0.8, hospitals)
    sizes = fewest + rng.multinomial(rows - fewest * hospitals, share / share.sum())
    owner = rng.permutation(np.repeat(np.arange(hospitals), sizes))
    numbers = columns - len(WORDS)
    shift = rng.normal(0, 0.3, (hospitals, numbers))  # hospitals' patients differ
    x = rng.normal(size=(rows, numbers)) + shift[owner]
    gaps = {int(place): 0.02 * (number + 1) for number, place in enumerate(rng.choice(numbers, MISSING, False))}
    for place, rate in gaps.items():
        x[rng.random(rows) < rate, place] = np.nan
    frame: dict[str, object] = {CLIENT: np.char.add("hospital ", (owner + 1).astype(str))}
    frame |= {f"x{place + 1:02d}": np.round(x[:, place], 4) for place in range(numbers)}
    words = _words(rows, rng)
    frame |= words
    odds = _log_odds(np.nan_to_num(x), owner, words, rng)
    intercept = float(brentq(lambda b: float(expit(odds + b).mean()) - positive, -50, 50))  # pyright: ignore
    probability = expit(odds + intercept)
    frame[LABEL] = (rng.random(rows) < probability).astype(np.int64)
    return LargeTable(pd.DataFrame(frame), probability)


def _words(rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The columns of words."""
    chosen: dict[str, np.ndarray] = {}
    for name, words in WORDS.items():
        weight = 0.7 ** np.arange(len(words))
        chosen[name] = np.array(words, object)[rng.choice(len(words), rows, p=weight / weight.sum())]
    return chosen


def _log_odds(
    x: Float[np.ndarray, "rows numbers"],
    owner: Int[np.ndarray, "rows"],
    words: dict[str, np.ndarray],
    rng: np.random.Generator,
) -> Float[np.ndarray, "rows"]:
    """Log-odds of label 1, but for the common intercept."""
    hospitals, numbers = int(owner.max()) + 1, x.shape[1]
    slopes = rng.normal(0, 0.12, numbers)
    slopes[:6] = [0.5, -0.5, 0.4, -0.4, 0.3, 0.3]
    own = np.zeros((hospitals, numbers))
    own[:, :6] = rng.normal(0, 0.4, (hospitals, 6))
    odds = x @ slopes + np.einsum("rn,rn->r", x[:, :6], own[owner, :6])
    odds += rng.normal(0, 0.6, hospitals)[owner]
    odds += 0.4 * x[:, 6] * x[:, 7] + 0.15 * (x[:, 8] ** 2 - 1)
    for name, column in words.items():
        effect = dict(zip(WORDS[name], rng.normal(0, 0.4, len(WORDS[name])), strict=True))
        odds += pd.Series(column).map(effect).to_numpy(np.float64)
    return odds


def truth_scores(table: LargeTable, rows: Int[np.ndarray, "_"]) -> dict[str, float]:
    """Log-loss and AUROC of the true probabilities on some rows. No model is better, except by chance."""
    p = table.probability[rows]
    outputs = np.stack([np.zeros(len(p)), np.log(p) - np.log1p(-p)], axis=1)
    labels = table.frame[LABEL].to_numpy()[rows].astype(np.int32)
    return measure_rows((LogLoss(), AUROC()), outputs, labels)


def seconds(read: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    began = time.process_time()
    read()
    return time.process_time() - began


def main() -> None:
    """Make the file if it is missing, then score the truth or time the reading."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_table", description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path, help="the .csv file of the table")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--hospitals", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="decides everything; give the one that made the file")
    parser.add_argument("--split-seed", type=int, default=0, help="division whose test rows the truth is scored on")
    parser.add_argument("--truth", action="store_true", help="score the true probabilities on the test rows")
    parser.add_argument("--pairs", type=int, default=0, help="times that both readings are measured")
    args = parser.parse_args()
    console = Console()
    if args.truth or not args.file.exists():
        table = large_table(args.rows, args.hospitals, seed=args.seed)
        if not args.file.exists():
            table.frame.to_csv(args.file, index=False)
        if args.truth:
            division = table_partition(args.file, CLIENT, LABEL, split_seed=args.split_seed)
            scores = truth_scores(table, division.test.index)
            console.print(", ".join(f"{name} {value:.4f}" for name, value in scores.items()))
    if args.pairs:
        time_pairs(args.file, args.pairs, console)


def time_pairs(file: Path, pairs: int, console: Console) -> None:
    """Print the processor seconds of `pandas.read_csv`, of reading with a schema, and of `from_table`, in turns."""
    reads: dict[str, Callable[[], object]] = {
        "pandas.read_csv": lambda: pd.read_csv(file),
        "reading and schema": lambda: schema_of(file),
        "from_table": lambda: from_table(file, client=CLIENT, label=LABEL),
    }
    times = [[seconds(read) for read in reads.values()] for _ in range(pairs)]
    for one in times:
        console.print(", ".join(f"{name} {spent:.2f} s" for name, spent in zip(reads, one, strict=True)))
    for place, name in enumerate(reads):
        ratio = statistics.median(one[place] / one[0] for one in times)
        console.print(f"{name}: median ratio {ratio:.2f}")


def schema_of(file: Path) -> Schema:
    """Read the table and fit its schema on about two thirds of the rows; rows are neither divided nor encoded."""
    pool = read_pool(file, CLIENT, LABEL, "split", None, (), (), (), False, None)
    rows = np.arange(len(pool.table))
    options: dict[str, Any] = {"categorical": (), "keep": (), "standardise": True, "missing": "median"}
    return pool.fit(rows % 3 > 0, pool.labels_of(rows)[1], **options)[0]


if __name__ == "__main__":
    main()
