"""What a run of the benchmark says: a table for people, and the same as JSON."""

import os
import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.peers import BEFORE, OWN
from benchmarks.runner import Comparison, Measured
from idiolect.study.store.provenance import provenance

PACKAGES = ("torch", "fedjax", "pfl", "flwr", "ray")
MANY_PROCESSES = ("flower",)  # one process's seconds say nothing of them
COLUMNS = (
    "work",
    "system",
    "s a round",
    "ratio",
    "95 %",
    "cpu ratio",
    "GFLOP/s",
    "of peak",
    "peak MB",
    "compile s",
    "distance",
)


def row(comparison: Comparison, measured: Measured) -> list[str]:
    """One system's line: nothing is left out, a system that did not run says why.

    ratio: its seconds over idiolect's; 95 %: of the median of the repeats' ratios; cpu ratio: of their threads'
    seconds. GFLOP/s: of the method's operations, whatever the system makes of them.
    of peak: against the faster of the two products. compile s: the first rounds less what rounds take later.
    """
    work, name = comparison.work, measured.system
    if not measured.seconds:
        return [work.name, name, f"skipped: {measured.skipped}"]
    operations = work.counts.operations * (1 if name in (OWN, BEFORE) else work.trained / work.cohort)
    speed = operations / measured.median / 1e9
    ratio, cpu, interval = comparison.ratio(name), comparison.cpu_ratio(name), comparison.interval(name)
    compiling = max(0.0, measured.first - measured.median * work.rounds)
    return [
        work.name,
        name,
        f"{measured.median:.4f}",
        "" if name == OWN or ratio is None else f"{ratio:.2f}",
        "" if name == OWN or interval is None else f"{interval[0]:.2f}-{interval[1]:.2f}",
        "" if name in (OWN, *MANY_PROCESSES) or cpu is None else f"{cpu:.2f}",
        f"{speed:.1f}",
        f"{speed / max(comparison.peak.values()):.0%}" if comparison.peak else "",
        "" if measured.memory is None else f"{measured.memory:.0f}",
        f"{compiling:.1f}",
        "" if measured.distance is None else f"{measured.distance:.0e}",
    ]


def table(comparisons: list[Comparison]) -> Table:
    """All systems on all workloads."""
    made = Table(*COLUMNS)
    for column in made.columns[2:]:
        column.justify = "right"
    for comparison in comparisons:
        for measured in comparison.systems:
            made.add_row(*row(comparison, measured))
        made.add_section()
    return made


def machine() -> dict[str, Any]:
    """Where and with what it was measured."""
    return {
        **provenance(),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "peers": {name: _version(name) for name in PACKAGES},
    }


def as_json(comparisons: list[Comparison], about: dict[str, Any]) -> dict[str, Any]:
    """Everything measured, as numbers."""
    return {
        "machine": about,
        "workloads": [
            {
                "name": c.work.name,
                "title": c.work.title,
                "note": c.work.note,
                "operations": c.work.counts.operations,
                "bytes": c.work.counts.bytes,
                "peak_gflops": c.peak,
                "systems": [
                    {**asdict(m), "ratio": c.ratio(m.system), "interval": c.interval(m.system)} for m in c.systems
                ],
            }
            for c in comparisons
        ],
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
