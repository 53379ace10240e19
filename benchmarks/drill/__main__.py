"""A federation through months in an hour, on this machine.

    python -m benchmarks.drill FOLDER            ten sites, 500 rounds
    python -m benchmarks.drill FOLDER --small    six sites, 30 rounds; some minutes
    python -m benchmarks.drill FOLDER --check    check a drill that has ended once more, and write its record again

Writes everything in FOLDER, which is new; the record is FOLDER/drill.json and FOLDER/drill.md. Ends with status 1 if
something is not as it must be. However it ends, nothing of it runs afterwards.
"""

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.drill.checks import checked
from benchmarks.drill.drill import Drill
from benchmarks.drill.plan import FEWEST, SMALL, Size
from benchmarks.drill.record import machine_of, written
from benchmarks.drill.services import FEW_THREADS
from idiolect.core.errors import IdiolectError, require
from idiolect.deploy.nvflare.processes import terminable


def main() -> None:
    """Run the drill, or check one that has ended."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drill", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="a new folder for everything")
    parser.add_argument("--sites", type=int, help=f"sites, the late one among them: at least {FEWEST} (default: 10)")
    parser.add_argument("--rounds", type=int, help="rounds: at least 30 (default: 500)")
    parser.add_argument("--small", action="store_true", help="six sites, 30 rounds; the first site answers slowly")
    parser.add_argument("--check", action="store_true", help="only check, and write the record")
    args = parser.parse_args()
    size = SMALL if args.small else Size()
    given = {name: value for name in ("sites", "rounds") if (value := getattr(args, name)) is not None}
    size = replace(size, **given)
    require(size.sites >= FEWEST, f"--sites {size.sites}: the parts of the drill need at least {FEWEST} sites")
    require(size.rounds >= SMALL.rounds, f"--rounds {size.rounds}: the drill needs at least {SMALL.rounds} rounds")
    os.environ |= FEW_THREADS  # the replay computes as the drill's processes do
    if args.check:
        about = args.folder / "about.json"
        require(about.is_file(), f"{about} is missing: {args.folder} holds no drill")
        size = Size(**json.loads(about.read_text())["size"])
    drill = Drill(args.folder, size, lambda line: print(line, flush=True))
    if not args.check:
        new = not args.folder.exists() or not any(args.folder.iterdir())
        require(new, f"{args.folder} is not empty: name a new folder, or add --check")
        drill.begin(machine_of())
        with terminable():
            drill.run()
    good = written(drill, checked(drill))
    print(drill.folder / "drill.md")
    if not good:
        sys.exit("not everything is as it must be; see the page")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("stopped; nothing of the drill runs any more")
    except IdiolectError as error:
        sys.exit(f"error: {error}")
