"""Ask for advice on federations whose truth is known, and count how often it is right.

    python -m results.advice [--draws 100] [--task regression] [--only two_groups,alike] [-o FILE]

Each line of the file is one draw, added as it is made; the same command goes on where it stopped. Trees are left out,
since a verdict does not depend on them.
"""

import argparse
import csv
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from idiolect.runtime.compiled import use_compilation_cache
from idiolect.study.advice.advise import advise
from results.advice.truths import TRUTHS, Client, Draw, federation

FOLDER = Path(__file__).parent
TASKS = ("classification", "regression")
COLUMNS = (
    *("truth", "draw", "right", "harmful", "outcome", "method", "gain", "low", "high", "alone", "alone_loss"),
    *("gains", "loses", "seconds"),
)


def row_of(truth: Callable[[Draw], list[Client]], number: int, task: str) -> dict[str, str]:
    """Ask on one federation."""
    began = time.perf_counter()
    decision = advise(federation(truth, number, task), baselines="regressions").decision
    calls = [client.call for client in decision.clients]
    gain = decision.gain
    values = (
        truth.__name__,
        number,
        int(decision.outcome in TRUTHS[truth]),
        int(decision.outcome == "alone" and "alone" not in TRUTHS[truth]),
        decision.outcome,
        decision.method,
        *("" if value is None else f"{value:.6f}" for value in (gain.mean, gain.low, gain.high)),
        decision.alone,
        f"{decision.loss:.6f}",
        calls.count("gains"),
        calls.count("loses"),
        f"{time.perf_counter() - began:.1f}",
    )
    return dict(zip(COLUMNS, map(str, values), strict=True))


def table(rows: Sequence[dict[str, str]]) -> str:
    """The counts of each truth, in Markdown."""
    lines = ["| truth | draws | right | inconclusive | wrongly not federated |", "|---|---:|---:|---:|---:|"]
    for truth in TRUTHS:
        own = [row for row in rows if row["truth"] == truth.__name__]
        right, harmful = (sum(int(row[key]) for row in own) for key in ("right", "harmful"))
        unclear = sum(row["outcome"] == "unclear" for row in own)
        if own:
            lines.append(f"| {truth.__name__.replace('_', ' ')} | {len(own)} | {right} | {unclear} | {harmful} |")
    return "\n".join(lines)


def main() -> None:
    """Make the draws that the file does not have yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100, help="draws of each truth")
    parser.add_argument("--task", choices=TASKS, default=TASKS[0])
    parser.add_argument("--only", default="", help="some truths, with commas")
    parser.add_argument("-o", "--out", type=Path, help="the CSV file; default: that of the task in this folder")
    given = parser.parse_args()
    path = given.out or FOLDER / f"truth-{given.task}.csv"
    use_compilation_cache()
    done: list[dict[str, str]] = []
    if path.exists():
        with path.open(newline="") as file:
            done = list(csv.DictReader(file))
    known = {(row["truth"], int(row["draw"])) for row in done}
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for number in range(given.draws):
            for truth in TRUTHS:
                name = truth.__name__
                labels_only = name == "label_shift" and given.task == "regression"  # there are no shares to differ
                if (
                    (not given.only or name in given.only.split(","))
                    and (name, number) not in known
                    and not labels_only
                ):
                    done.append(row_of(truth, number, given.task))
                    writer.writerow(done[-1])
                    file.flush()
    print(table(done))


if __name__ == "__main__":
    main()
