"""Kills at random instants, as a page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.sites.kills import KILLS, LEFT, ROUNDS, SITES, measure
from benchmarks.sites.record import machine, table, write


def report(folder: Path) -> bool:
    """Measure and write the page; whether nothing was lost or applied twice."""
    about = machine()
    return written(about, measure(folder))


def written(about: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Write the page; whether all kills happened and all states are equal."""
    rows = [(what, times, found["kills"].get(what, 0)) for what, times in KILLS.items()]
    same = found["shared_same_bits"] and found["private_same_bits"]
    page = [
        f"SCAFFOLD, {SITES} sites, mutual TLS, {ROUNDS} rounds; a kill at a random instant after each new round, "
        f"none in the last {LEFT}. A site's or hub's parent is killed alone or with all it has started, and started "
        "again after 1 to 4 s. The supervisor went on by itself.",
        "",
        *table(("killed", "planned", "done"), rows),
        f"{found['jobs']} jobs, {found['seconds']} s in all; {found['partial_rounds']} rounds had not all answers; "
        f"rounds without a line in participation.jsonl: {len(found['rounds_without_a_line'])}.",
        "",
        "Against an undisturbed run in one process in which the same sites answered each round: shared state "
        f"{'equal in every bit' if found['shared_same_bits'] else found['shared_difference']}, private states "
        f"{'equal in every bit' if found['private_same_bits'] else found['private_difference']}.",
    ]
    print(write("faults", "When something is killed", about, found, page))
    return bool(same) and dict(found["kills"]) == KILLS and not found["rounds_without_a_line"]
