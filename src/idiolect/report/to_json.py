"""A comparison as plain JSON values, for scripts."""

import math
from dataclasses import asdict
from typing import Any

from idiolect.report.verdicts import verdict_summary
from idiolect.study.analyse.outcomes import Line
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import run_id


def to_dict(results: Results) -> dict[str, Any]:
    """Convert every line with all its numbers, and every run with its status; NaN and infinity become null.

    Each score has mean, std, half_width (95 %) and seeds. Scores that tables show in per cent (accuracy) are
    fractions here, but a published value and the difference to it are in per cent. A line's `metrics` holds every
    measured metric, over all samples. A run's diagnostics are name -> list of (round, value).
    """
    experiment = results.experiment
    cells = [
        {
            "id": cell.id,
            "title": cell.title,
            "metric": results.metric(cell).name,
            "select": cell.select,
            "rounds": cell.rounds,
            "notes": results.notes(cell),
            "audit": results.audit(cell),
            "lines": [_line(line) for line in results.lines if line.cell == cell.id],
            "further": [_line(line) for line in results.further if line.cell == cell.id],
        }
        for cell in experiment.cells
    ]
    comparison = {
        "experiment": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "protocol": experiment.protocol,
        "seeds": list(experiment.seed_list),
        "verdicts": verdict_summary(results),
        "cells": cells,
        "runs": _runs(results),
    }
    return plain(comparison)


def _line(line: Line) -> dict[str, Any]:
    interval = line.interval
    ends = None if interval is None or interval.low is None else [interval.low, interval.high]
    return {**asdict(line), "difference": line.difference, "interval": ends, "verdict": line.verdict,
            "published": None if line.published is None else line.published.model_dump()}  # fmt: skip


def _runs(results: Results) -> list[dict[str, Any]]:
    """List every run of the experiment, also those that were not started."""
    runs: list[dict[str, Any]] = []
    for cell in results.experiment.cells:
        for method in cell.methods:
            for seed in results.experiment.seed_list:
                name = run_id(cell.id, method.title, seed)
                row = results.rows.get(name)
                run = {"id": name, "cell": cell.id, "method": method.title, "seed": seed}
                run["status"] = "not run" if row is None else row.status
                if row is not None:
                    run |= {"round": row.round, "seconds": row.seconds, "compile_seconds": row.compile_seconds}
                    run |= {"message": row.message, "diagnostics": results.store.diagnostics(name)}
                runs.append(run)
    return runs


def plain(value: Any) -> Any:
    """Convert a value to what JSON can express: dicts with text keys, lists, and None for NaN and infinity."""
    if isinstance(value, dict):
        return {str(key): plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
