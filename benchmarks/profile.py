"""Where a round's time goes: the operations of its compiled program, the longest first.

    python -m benchmarks.profile W4
    python -m benchmarks.profile W8 --top 30

One device, so that nothing runs beside; one call that is traced after one that is not. Milliseconds are summed over a
round; names are XLA's.
"""

import argparse
import gzip
import json
import tempfile
from collections import Counter
from pathlib import Path

import jax
from rich.console import Console
from rich.table import Table

from benchmarks.beginning import beginning
from benchmarks.peers.own import Rounds, Scores
from benchmarks.workloads import named, smaller

_AROUND = ("ThunkExecutor", "$", "Pjit", "Execute", "end:")  # what only contains other events, or is Python's


def traced(system: Rounds) -> Counter[tuple[str, int]]:
    """Microseconds of each operation in one round, with how often it ran."""
    system.rounds(1)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, create_perfetto_trace=True):
            system.rounds(1)
        (path,) = Path(folder).rglob("perfetto_trace.json.gz")
        with gzip.open(path) as file:
            content = json.load(file)
    events = content["traceEvents"] if isinstance(content, dict) else content
    spent: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for event in events:
        if event.get("ph") == "X" and not event["name"].startswith(_AROUND) and "::" not in event["name"]:
            spent[event["name"]] += event["dur"]
            times[event["name"]] += 1
    return Counter({(name, times[name]): int(micro) for name, micro in spent.items()})


def main() -> None:
    """Profile and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("workload", help="W1, W2, ...")
    parser.add_argument("--top", type=int, default=15, help="operations shown")
    parser.add_argument("--quick", action="store_true", help="small rounds")
    args = parser.parse_args()
    work = smaller(named(args.workload)) if args.quick else named(args.workload)
    given = beginning(work, 2)
    found = traced((Scores if work.evaluates else Rounds)(work, given))
    total = sum(found.values())
    table = Table(title=f"{work.name}: {work.title}")
    for column in ("operation", "times", "ms", "share"):
        table.add_column(column, justify="left" if column == "operation" else "right")
    for (name, times), micro in found.most_common(args.top):
        table.add_row(name, f"{times}", f"{micro / 1e3:.1f}", f"{micro / total:.0%}")
    table.add_row("all operations", "", f"{total / 1e3:.1f}", "")
    Console().print(table)


if __name__ == "__main__":
    main()
