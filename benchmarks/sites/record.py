"""Writes what was measured as JSON and as a page, with command, machine and date."""

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

import numpy as np
import psutil

RESULTS = Path(__file__).parents[2] / "results" / "sites"


def machine() -> dict[str, Any]:
    """This machine, now."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        "jax": version("jax"),
        "nvflare": version("nvflare"),
    }


def write(name: str, title: str, about: Mapping[str, Any], found: Mapping[str, Any], page: Sequence[str]) -> Path:
    """Write results/sites/NAME.json and NAME.md. about: `machine()` before the measurement; page: lines."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps({"about": dict(about), **found}, indent=1) + "\n")
    told = f"{about['date']} UTC, {about['cores']} cores shared with others, load {about['load'][0]} before the start"
    versions = f"Python {about['python']}, JAX {about['jax']}, NVFlare {about['nvflare']}"
    head = [f"# {title}", "", f"`python -m benchmarks.sites {name}`; {told}; {versions}.", ""]
    path = RESULTS / f"{name}.md"
    path.write_text("\n".join([*head, *page]) + "\n")
    return path


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines] + [""]


def memory(pid: int) -> float:
    """MB of a process: its own share of pages (PSS), so that nothing counts twice; 0 if it has ended."""
    try:
        return psutil.Process(pid).memory_full_info().pss / 1e6
    except psutil.Error:
        return 0.0


def memory_together(pids: Iterable[int]) -> float:
    """MB of physical pages that these processes have mapped, each page once, as if nobody else used their libraries.

    Read from /proc/PID/pagemap, which shows page numbers to root only.
    """
    seen = [numbers for pid in pids for numbers in _pages(pid)]
    return len(np.unique(np.concatenate(seen))) * PAGESIZE / 1e6 if seen else 0.0


def _pages(pid: int) -> list[np.ndarray]:
    """The numbers of a process's pages in memory; none if it has ended."""
    found = list[np.ndarray]()
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/pagemap", "rb") as table:
            for line in maps:
                start, end = (int(word, 16) // PAGESIZE for word in line.split(None, 1)[0].split("-"))
                if start < 1 << 35:  # not the kernel's own page, which has no entry
                    table.seek(8 * start)
                    entries = np.frombuffer(table.read(8 * (end - start)), np.uint64)
                    found.append(entries[entries >> np.uint64(63) == 1] & np.uint64((1 << 55) - 1))
    except (OSError, ValueError):
        return []
    return found


def folder_bytes(path: Path) -> int:
    """Bytes of all files below a folder."""
    total = 0
    for file in path.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() and not file.is_symlink() else 0
        except OSError:
            continue
    return total
