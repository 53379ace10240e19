"""What the folders of results hold: rows of their CSV files, and each run's score over all test samples."""

import csv
import io
from collections import defaultdict
from functools import cache
from pathlib import Path

from idiolect.core.files import unpacked

HERE = Path(__file__).parent
README, COMPARISONS = HERE / "README.md", HERE / "comparisons.md"


def rows_of(folder: str, name: str = "table.csv") -> list[dict[str, str]]:
    """The rows of a folder's CSV file, which may be stored compressed as `name`.gz."""
    file = HERE / folder / name
    text = unpacked(file if file.is_file() else file.with_name(f"{name}.gz"))
    return list(csv.DictReader(io.StringIO(text, newline="")))


@cache  # a folder is asked several times, and reading clients.csv is all of the work
def pooled(folder: str) -> dict[tuple[str, str], dict[int, float]]:
    """(cell, "method/model") -> seed -> accuracy in per cent over all test samples, from clients.csv."""
    right: defaultdict[tuple[str, str, int], float] = defaultdict(float)
    count: defaultdict[tuple[str, str, int], int] = defaultdict(int)
    for row in rows_of(folder, "clients.csv"):
        if n := int(row["n"]):
            run = row["cell"], f"{row['method']}/{row['model']}", int(row["seed"])
            right[run] += n * float(row["accuracy"])
            count[run] += n
    scores: defaultdict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for (cell, name, seed), total in count.items():
        scores[cell, name][seed] = 100 * right[cell, name, seed] / total
    return dict(scores)


@cache
def step(folder: str) -> dict[tuple[str, str], float]:
    """(cell, "method/model") -> by how much one test sample changes `pooled`: the largest over the seeds."""
    count: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    for row in rows_of(folder, "clients.csv"):
        count[row["cell"], f"{row['method']}/{row['model']}", row["seed"]] += int(row["n"])
    steps: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (cell, name, _), n in count.items():
        if n:
            steps[cell, name] = max(steps[cell, name], 100 / n)
    return dict(steps)


def between(text: str, marker: str, part: str) -> str:
    """A page with `part` between its two markers, the comments "MARKER: begin" and "MARKER: end"."""
    begin, end = f"<!-- {marker}: begin -->\n", f"<!-- {marker}: end -->\n"
    before, rest = text.split(begin)
    return f"{before}{begin}\n{part}\n{end}{rest.split(end)[1]}"
