"""A sweep's table, CSV, figure, and its chosen settings as an experiment file."""

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import tomli_w
from rich import box
from rich.table import Table

from idiolect.core.errors import StoreError
from idiolect.core.files import atomic_write
from idiolect.data.federated import TaskKind
from idiolect.report.style import save
from idiolect.report.sweep_figure import sweep_figure
from idiolect.report.text import SPREAD, score
from idiolect.study.search.choose import Swept, Tried
from idiolect.study.search.engine import Setting
from idiolect.study.search.space import shown
from idiolect.study.spec.experiment import Experiment, metrics_of
from idiolect.study.store.summary import OverSeeds, half_width


def _row(one: Tried) -> dict[str, Any]:
    test = one.test
    return {
        "method": one.setting.method,
        **one.setting.values,
        "validation": one.validation.mean,
        "validation_std": one.validation.std,
        "validation_ci95": one.validation.half_width,
        "seeds": one.validation.seeds,
        "rounds": one.rounds,
        "chosen": one.chosen,
        "test": None if test is None else test.mean,
        "test_std": None if test is None else test.std,
        "test_ci95": None if test is None else test.half_width,
        "failures": "; ".join(one.failures),
    }


def frame(swept: Swept) -> pd.DataFrame:
    """Build a data frame with one row for each setting, unrounded. Scores shown in per cent are fractions here."""
    return pd.DataFrame([_row(one) for one in swept.tried])


def rich_sweep(swept: Swept) -> Table:
    """Build the table for a terminal: each setting, its validation score over seeds, its rounds, its test score."""
    name = f"{swept.metric.column}, %" if swept.metric.percent else swept.metric.column
    spent = "; ".join(
        f"{name}: {b['settings']} settings, {b['rounds x runs']} rounds x runs" for name, b in swept.budget.items()
    )
    several = any(one.validation.seeds > 1 for one in swept.tried)
    table = Table(
        title=f"{swept.experiment.name}: chosen by validation {name}",
        title_justify="left",
        caption=f"spent on choosing: {spent}\nafter ±: {SPREAD}" if several else f"spent on choosing: {spent}",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("method")
    table.add_column("setting")
    all_tested = sum(one.test is not None for one in swept.tried) > len(swept.chosen)
    for column in ("validation", "rounds", "test (shown, no say in the choice)" if all_tested else "test"):
        table.add_column(column, justify="right")
    table.add_column("")
    for one in swept.tried:
        status = "chosen" if one.chosen else "diverged" if one.failures else ""
        style = "bold" if one.chosen else "red" if one.failures else ""
        scores = ["" if value is None else score(value, swept.metric) for value in (one.validation, one.test)]
        cells = (one.setting.method, shown(one.setting.values), scores[0], str(one.rounds), scores[1], status)
        table.add_row(*cells, style=style)
    return table


def to_dict(swept: Swept) -> dict[str, Any]:
    """The sweep as JSON values; null for a missing number."""
    rows = json.loads(str(frame(swept).to_json(orient="records", double_precision=15)))
    return {"metric": swept.metric.name, "budget": dict(swept.budget), "settings": rows}


def write_files(swept: Swept, out: Path) -> list[Path]:
    """Write sweep.csv, sweep.png, sweep.svg and, if a setting was chosen, chosen.toml into a folder; their paths."""
    with atomic_write(out / "sweep.csv", shared=True) as file:
        file.write(frame(swept).to_csv(index=False, lineterminator="\n").encode())
    written = [out / "sweep.csv", *save(sweep_figure(swept), out / "sweep.png")]
    if swept.chosen:
        written.append(out / "chosen.toml")
        with atomic_write(written[-1], shared=True) as file:
            file.write(experiment_file(swept).encode())
    return written


def experiment_file(swept: Swept) -> str:
    """The chosen settings as an experiment in TOML: one cell for each method, evaluated on test data."""
    experiment = swept.experiment
    cells: list[dict[str, Any]] = []
    for one in swept.chosen:
        cell, method = one.setting.cell, one.setting.cell.methods[0]
        keys = {"data", "model", "rounds", "cohort", "sampling", "eval_every", "shared_init", "metric"}
        values = cell.model_dump(mode="json", include=keys)
        name = cell.id if len(swept.chosen) == 1 else f"{cell.id} {method.name}"
        cells.append({"id": name, **values, "splits": ["train", "test"], "methods": [method.spec]})
    head = {"name": f"{experiment.name}-chosen", "seeds": experiment.seeds, "first_seed": experiment.first_seed}
    return tomli_w.dumps(_without_none({**head, "cells": cells}))


def _without_none(value: Any) -> Any:
    """Leave out None, which TOML cannot express."""
    if isinstance(value, dict):
        return {key: _without_none(part) for key, part in value.items() if part is not None}
    return [_without_none(part) for part in value] if isinstance(value, list | tuple) else value


def read_swept(folder: Path, experiment: Experiment, task: TaskKind) -> Swept:
    """Read a sweep's outcome back from its sweep.csv; what it cost is not in it.

    Raises `StoreError` for a file that is not a sweep's.
    """
    path = folder / "sweep.csv"
    try:
        table = pd.read_csv(path, keep_default_na=False)
        first, last = (list(table.columns).index(name) for name in ("method", "validation"))
        keys = list(table.columns)[first + 1 : last]
        cell, tried = experiment.cells[0], list[Tried]()
        for row in table.to_dict(orient="records"):
            values = {str(key): value_in(str(row[key])) for key in keys if str(row[key]) != ""}
            own = cell.model_copy(update={"methods": tuple(m for m in cell.methods if m.name == row["method"])})
            failures = tuple(part for part in str(row["failures"]).split("; ") if part)
            std, seeds = _float(row["validation_std"]), int(row["seeds"])
            over = OverSeeds(_float(row["validation"]), std, half_width(std, seeds), seeds)
            chosen = str(row["chosen"]) == "True"
            tried.append(Tried(Setting(values, own), over, int(row["rounds"]), failures, chosen))
    except (OSError, ValueError, KeyError) as error:
        raise StoreError(f"{path} is not a sweep's table: {str(error).splitlines()[0]}") from error
    return Swept(experiment, metrics_of(experiment.cells[0], task)[0], tuple(tried), {})


def value_in(text: str) -> Any:
    """A setting's value in a CSV file: a number if it reads as one, else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _float(value: Any) -> float:
    return math.nan if value == "" else float(value)
