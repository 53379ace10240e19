"""Seconds from a command to its first rounds, in new processes: once with no kept programs, then with those kept.

    python -m benchmarks.start -- compare --data mnist --methods fedavg,ditto,pfedme,local --data-dir FOLDER

Each call is a new process with a new folder; all share a cache folder of their own, so that the first call compiles
and the others find its programs. With `--before CHECKOUT`, calls of another checkout take turns with these.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
MARK = "first rounds done"
"""The line that a command prints without a terminal when a run has done a round."""
_MAIN = "from idiolect.cli.main import main; main()"


def seconds_to_the_first_round(command: Sequence[str], checkout: Path, cache: Path) -> tuple[float, float]:
    """(seconds to the first round, to the end) of a command. Raises `SystemExit` with what it printed if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "IDIOLECT_CACHE": str(cache)}
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, *command, "--out", f"{folder}/run"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        first, printed = None, list[str]()
        for line in process.stderr:
            printed.append(line)
            if first is None and line.startswith(MARK):
                first = time.perf_counter() - began
        if process.wait() or first is None:
            sys.exit("".join(printed) or "no round was run")
        return first, time.perf_counter() - began


def checkouts(before: Path | None) -> dict[str, Path]:
    """This checkout, and the one of before if it is given, whose calls take turns."""
    return {"now": ROOT, **({"before": before} if before else {})}


def main() -> None:
    """Measure and print one line for each checkout."""
    parser = argparse.ArgumentParser(description="Seconds from a command to its first rounds.")
    parser.add_argument("--repeats", type=int, default=7, help="calls with kept programs")
    parser.add_argument("--before", type=Path, help="another checkout, whose calls take turns with these")
    parser.add_argument("command", nargs="+", help="after --: the command without --out")
    given = parser.parse_args()
    turns = checkouts(given.before)
    with tempfile.TemporaryDirectory() as folder:
        measured = {name: list[tuple[float, float]]() for name in turns}
        for turn in range(given.repeats + 1):
            for name, checkout in turns.items():
                times = seconds_to_the_first_round(given.command, checkout, Path(folder) / name)
                measured[name].append(times)
                print(
                    f"{name} {turn}: first round {times[0]:.2f} s, end {times[1]:.2f} s", file=sys.stderr, flush=True
                )
    for name, times in measured.items():
        first, end = (median(one[place] for one in times[1:]) for place in (0, 1))
        print(
            f"{name}: first round after {first:.2f} s (median of {given.repeats}), with nothing kept "
            f"{times[0][0]:.2f} s; whole command {end:.2f} and {times[0][1]:.2f} s"
        )


if __name__ == "__main__":
    main()
