"""What happens to small federations of real processes, one after the other, in a network of their own.

It needs Linux and root: a network and mounts of its own, in which packets are recorded and the loopback is cut.
"""

import json
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.sites.live import Row
from benchmarks.sites.record import RESULTS, machine, table, write
from benchmarks.sites.times import times
from benchmarks.sites.troubles import clock, cut, foreign, full_hub, full_site, slow, twice
from benchmarks.sites.wire import wire

EVENTS: dict[str, Callable[[Path], list[Row]]] = {
    "wire": wire,
    "cut": cut,
    "slow": slow,
    "full_site": full_site,
    "full_hub": full_hub,
    "clock": clock,
    "twice": twice,
    "foreign": foreign,
    "times": times,
}


def report(folder: Path) -> bool:
    """Run all in a network of their own and write the page; whether all went as it must."""
    (RESULTS / "events.json").unlink(missing_ok=True)
    return isolated(folder, list(EVENTS))


def isolated(folder: Path, names: list[str]) -> bool:
    """Run these events; what the page has of others stays."""
    folder.mkdir(parents=True, exist_ok=True)
    inside = [sys.executable, "-m", "benchmarks.sites.events", "inside", str(folder), *names]
    begin = 'ip link set lo up; exec "$@"'
    return subprocess.run(["unshare", "--net", "--mount", "sh", "-c", begin, "sh", *inside]).returncode == 0


def inside(folder: Path, names: list[str]) -> bool:
    """Run these events here, and write the page after each."""
    good = True
    for name in names:
        about = machine()
        print(name, flush=True)
        try:
            rows = EVENTS[name](folder / name)
        except Exception as error:
            traceback.print_exc()
            rows = [Row(name, f"not measured: {type(error).__name__}", "", False)]
        good = good and all(row.good for row in rows)
        _add(name, {"date": about["date"], "load": about["load"], "rows": [asdict(row) for row in rows]})
    return good


def _add(name: str, found: dict[str, Any]) -> None:
    path = RESULTS / "events.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {"about": machine(), "events": {}}
    events = {**known["events"], name: found}
    events = {key: events[key] for key in EVENTS if key in events}
    lines = [
        (row["event"], row["seen"], row["seconds"], "yes" if row["good"] else "NO", event["date"], event["load"][0])
        for event in events.values()
        for row in event["rows"]
    ]
    page = [
        "Small federations of 3 sites (times and memory: 4) between real processes, mutual TLS, each in a network of "
        "its own. Date (UTC) and load of the machine (1 minute) are of when the event began.",
        "",
        *table(("event", "what was seen", "seconds", "as it must be", "date", "load"), lines),
    ]
    write("events", "What happens to real sites", known["about"], {"events": events}, page)


if __name__ == "__main__":
    command, where, *which = sys.argv[1:]
    done = {"inside": inside, "isolated": isolated}[command](Path(where), which)
    sys.exit(0 if done else 1)
