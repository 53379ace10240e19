"""A small sweep on whatever devices this process has; `python -m tests.sweep_on_devices FILE` keeps its table."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from idiolect import sweep
from idiolect.data import from_arrays
from idiolect.runtime.program import Program


def table() -> dict[str, Any]:
    """Nine runs (3 rates, 3 seeds), then the best rate's three on test data: scores, and the devices at work."""
    rng = np.random.default_rng(0)
    parts: dict[str, Any] = {}
    for i, n in enumerate((24, 40, 31, 12)):
        x = rng.normal(size=(n, 4)).astype("f4")
        parts[f"c{i}"] = x, (x @ rng.normal(size=(4, 3))).argmax(axis=1)
    at_work: list[int] = []
    advance = Program.advance

    def watched(self: Program, rows: Sequence[int], *more: Any) -> Any:
        states = advance(self, rows, *more)
        at_work.append(len(jax.tree.leaves(states.shared)[0].devices()))
        return states

    Program.advance = watched
    try:
        method = {"name": "ditto", "local_steps": 2, "batch_size": 5}
        options: dict[str, Any] = {"rounds": 4, "eval_every": 4, "sampling": "binomial", "cohort": 2.5, "seeds": 3}
        space = {"rate": [0.3, 0.1, 0.01]}
        found = sweep(from_arrays(parts, validation=0.25), "mlr", method, space=space, **options).table()
    finally:
        Program.advance = advance
    columns = {name: found[name].tolist() for name in ("rate", "validation", "chosen", "test")}
    return {"devices": at_work, **columns}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(table()))
