"""Real processes on this machine, measured.

    python -m benchmarks.sites parity     equal to a simulation, and to itself bit for bit; some 8 minutes
    python -m benchmarks.sites faults     50 kill -9 at random instants; some 17 minutes
    python -m benchmarks.sites soak       6 sites, 2,500 rounds; some 8 minutes
    python -m benchmarks.sites events     the wire, cuts, full disks, certificates, times; as root; some 10 minutes

Each writes results/sites/NAME.json and NAME.md.
"""

import argparse
import importlib
import shutil
import sys
import tempfile
from pathlib import Path

from idiolect.core.errors import IdiolectError

PARTS = ("parity", "faults", "soak", "events")


def main() -> None:
    """Measure one part; exit 1 if it does not reach what it must."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sites", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--folder", type=Path, help="an empty folder for the runs (default: temporary, removed)")
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp(prefix="sites-"))
    part = importlib.import_module(f"benchmarks.sites.{args.part}")
    good = part.report(folder)
    if args.folder is None:
        shutil.rmtree(folder, ignore_errors=True)
    if not good:
        sys.exit(f"{args.part}: not everything is as it must be; see the page")


if __name__ == "__main__":
    try:
        main()
    except IdiolectError as error:
        sys.exit(f"error: {error}")
