"""idiolect and its peers, side by side in one run.

    python -m benchmarks                                  # every workload, some minutes
    python -m benchmarks --only W1 W3 --repeats 9 --out times.json
    python -m benchmarks --quick                          # small rounds: does everything work?
    python -m benchmarks --before ../earlier              # beside another commit: git worktree add ../earlier COMMIT
    python -m benchmarks --check benchmarks/floors.toml   # fails if a ratio is below its floor

The peers come with `pip install -e '.[bench]'`; those that are not installed are named as skipped. One that cannot
live beside idiolect gets an interpreter of its own: --peer-python flower=flower-env/bin/python.
"""

import argparse
import json
import sys
import tomllib
from pathlib import Path

from rich.console import Console

from benchmarks.peers import SYSTEMS
from benchmarks.report import as_json, machine, table
from benchmarks.runner import Comparison, Runner, below
from benchmarks.workloads import WORKLOADS, named, smaller
from idiolect.core.errors import ConfigError, IdiolectError, require, unknown


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n")[0])
    names = [work.name for work in WORKLOADS]
    parser.add_argument("--only", nargs="+", metavar="W", default=names, help=f"workloads: {', '.join(names)}")
    parser.add_argument("--repeats", type=int, default=7, help="timed repeats")
    parser.add_argument("--out", type=Path, help="write everything measured to this .json file")
    parser.add_argument("--quick", action="store_true", help="small rounds; their times mean nothing")
    parser.add_argument("--check", type=Path, help="a .toml file of floors; exit 1 if a ratio is below its own")
    parser.add_argument("--peer-python", action="append", default=[], metavar="NAME=PATH", help="its interpreter")
    parser.add_argument(
        "--before", type=Path, metavar="FOLDER", help="a checkout of another commit, timed as the system 'before'"
    )
    return parser.parse_args()


def interpreters(given: list[str]) -> dict[str, str]:
    """NAME=PATH of every --peer-python."""
    pairs = {name: str(Path(path).absolute()) for name, _, path in (pair.partition("=") for pair in given)}
    for name, path in pairs.items():
        if name not in SYSTEMS:
            raise unknown("system", name, SYSTEMS)
        require(Path(path).is_file(), f"--peer-python {name}={path}: there is no such file")
    return pairs


def read_floors(path: Path) -> dict[str, dict[str, float]]:
    """{workload: {peer: the least ratio}}."""
    require(path.is_file(), f"--check {path}: there is no such file")
    try:
        floors = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"--check {path}: {error}") from None
    for name, peers in floors.items():
        if name not in (known := [work.name for work in WORKLOADS]):
            raise unknown("workload", name, known)
        for peer in peers:
            if peer not in named(name).peers:
                raise unknown(f"peer of {name}", peer, named(name).peers)
    return floors


def main() -> None:
    """Measure, print, write, check."""
    args = arguments()
    console = Console(width=None if sys.stdout.isatty() else 140)
    names = [work.name for work in WORKLOADS]
    for name in args.only:
        if name not in names:
            raise unknown("workload", name, names)
    require(args.repeats >= 1, f"--repeats {args.repeats} must be at least 1")
    floors = read_floors(args.check) if args.check else {}
    require(args.out is None or args.out.parent.is_dir(), f"--out {args.out}: there is no folder for it")
    if args.before is not None:
        here = args.before / "benchmarks" / "worker.py"
        require(here.is_file(), f"--before {args.before}: no checkout of idiolect, it has no benchmarks/worker.py")
        args.before = args.before.absolute()
    about = machine()  # before anything runs, so that the load is that of others
    runner = Runner(
        args.repeats,
        args.quick,
        interpreters(args.peer_python),
        lambda text: console.print(text, style="dim"),
        args.before,
    )
    comparisons: list[Comparison] = []
    for name in args.only:
        comparisons.append(runner.compare(smaller(named(name)) if args.quick else named(name)))
        console.print(table(comparisons[-1:]))
        if args.out:  # whole after each workload: a run that is stopped keeps what it has
            args.out.write_text(json.dumps(as_json(comparisons, about), indent=1) + "\n")
    console.print(table(comparisons))
    for comparison in comparisons:
        peaks = ", ".join(f"{name} {speed:.0f}" for name, speed in comparison.peak.items())
        work = comparison.work
        console.print(f"{work.name}: {work.title}; GFLOP/s of {peaks}{'; ' if work.note else ''}{work.note}")
    console.print(about)
    floors = {name: peers for name, peers in floors.items() if name in args.only}
    if found := below(comparisons, floors):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    try:
        main()
    except IdiolectError as error:
        sys.exit(f"error: {error}")
