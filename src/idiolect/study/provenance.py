"""Provenance: with what a number was made."""

import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

PACKAGES = ("idiolect", "jax", "jaxlib", "equinox", "optax", "numpy")


def provenance() -> dict[str, Any]:
    """Versions, device, time, and the state of the git repository that holds this package, if any.

    The repository is asked once a process: its state when the code was loaded, not after.
    """
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "device": f"{jax.device_count()} x {jax.devices()[0].device_kind}",
        "packages": {name: _version(name) for name in PACKAGES},
        "git": _git(),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@cache
def _git() -> dict[str, Any] | None:
    here = Path(__file__).resolve().parent

    def ask(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = ask("rev-parse", "HEAD")
    # An installed copy inside somebody else's repository must not claim that repository's commit.
    if commit is None or ask("ls-files", "--error-unmatch", str(Path(__file__).name)) is None:
        return None
    return {"commit": commit, "dirty": bool(ask("status", "--porcelain", "--untracked-files=no"))}
