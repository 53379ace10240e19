"""Provenance: the software, machine and time of a run."""

import os
import platform
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

from idiolect.core import plugins
from idiolect.core.memory import machine_memory

_CPUINFO = Path("/proc/cpuinfo")
PACKAGES = ("idiolect", "jax", "jaxlib", "equinox", "optax", "numpy")


def provenance() -> dict[str, Any]:
    """Collect versions, machine, device, time, and the state of the git repository that holds this package, if any.

    Unknown values are None. No value names the machine, its user or a path. Git is asked once a process, at the first
    call: the loaded code does not change after that.
    """
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": None if (memory := machine_memory()) is None else round(memory / 1e9),
        "device": f"{jax.device_count()} x {jax.devices()[0].device_kind}",
        "packages": {**{name: _version(name) for name in PACKAGES}, **plugins.PACKAGES},
        "git": _git(),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@cache
def _cpu() -> str | None:
    """The processor's name; None if unknown."""
    with suppress(OSError):
        for line in _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return " ".join(value.split()) or None
    return platform.processor() or None


@cache
def _git() -> dict[str, Any] | None:
    folder = Path(__file__).resolve().parent

    def ask(*arguments: str) -> str | None:
        try:
            result = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return result.stdout.strip() if result.returncode == 0 else None

    commit = ask("rev-parse", "HEAD")
    # An installed copy inside somebody else's repository must not claim that repository's commit.
    if commit is None or ask("ls-files", "--error-unmatch", str(Path(__file__).name)) is None:
        return None
    return {"commit": commit, "dirty": bool(ask("status", "--porcelain", "--untracked-files=no"))}
