"""A tiny experiment for tests of the engine, and what its folder holds, to the last bit."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from idiolect.report.launch import launch
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Experiment, experiment_of
from idiolect.study.store.store import DATABASE

ROOT = Path(__file__).parents[1]
DATA = {"name": "synthetic", "clients": 5, "max_size": 40, "validation": 0.2}
FEDAVG = {"name": "fedavg", "server_optimizer": "adam", "server_rate": 0.1, "local_steps": 2, "batch_size": 5}
LOCAL = {"name": "local", "local_steps": 2, "batch_size": 5}


def experiment(*methods: dict[str, Any], seeds: int = 1, name: str = "tiny", **cell: Any) -> Experiment:
    """One cell with five clients, two of them a round, six rounds, evaluated every two."""
    values = {
        "id": "cell",
        "data": DATA,
        "model": "mlr",
        "rounds": 6,
        "cohort": 2,
        "eval_every": 2,
        "splits": ["train", "validation", "test"],
        "methods": list(methods) or [FEDAVG, LOCAL],
    }
    return experiment_of({"name": name, "seeds": seeds, "cells": [{**values, **cell}]}, "test")


def run(experiment: Experiment, out: Path, **options: Any) -> Results:
    """Launch in this process, without a report."""
    return launch(experiment, out, **{"jobs": 1, "figures": False, "quiet": True, **options})


def content(out: Path) -> dict[str, Any]:
    """All that a folder's runs say: status and round, every evaluation, metric, diagnostic and model file."""
    db = sqlite3.connect(out / DATABASE)
    try:
        runs = db.execute(
            "SELECT id, config_hash, data_hash, status, round, message FROM runs ORDER BY id"
        ).fetchall()
        metrics = db.execute("SELECT * FROM metrics ORDER BY run, round, model, split").fetchall()
        evaluations = db.execute("SELECT * FROM evaluations ORDER BY run, round, model, split").fetchall()
        diagnostics = db.execute("SELECT * FROM diagnostics ORDER BY run, round, name").fetchall()
    finally:
        db.close()
    files = {str(f.relative_to(out)): f.read_bytes() for f in sorted((out / "models").rglob("*")) if f.is_file()}
    tables = {"metrics": metrics, "evaluations": evaluations, "diagnostics": diagnostics}
    return {"runs": runs, **tables, "models": files}


def leftovers(out: Path) -> list[Path]:
    """Half-written files that a killed writer left under its own name; nothing reads them."""
    return [f for f in out.rglob("*") if f.name.endswith(".tmp")]


def python(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python process that has ended: with these arguments, the package and the tests on its path."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def devices_flags(count: int) -> str:
    """XLA_FLAGS of a process with so many CPU devices, which compiles as this one does."""
    return f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"


def dies(action: Callable[..., Any], at: int, death: Callable[[], None]) -> Callable[..., Any]:
    """The action; right after its call number `at` comes death."""
    calls = 0

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        result = action(*args, **kwargs)
        if calls == at:
            death()
        return result

    return wrapped
