"""A sweep's table, CSV, figure, and its chosen settings as an experiment file."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from idiolect.files import atomic_write
from idiolect.report.style import blank, save, tidy
from idiolect.selection import Swept, Tried
from idiolect.space import shown
from idiolect.summary import OverSeeds, metric_name


def _row(one: Tried) -> dict[str, Any]:
    test = one.test
    return {
        "method": one.setting.method,
        **one.setting.values,
        "validation": one.validation.mean,
        "validation_std": one.validation.std,
        "seeds": one.validation.seeds,
        "rounds": one.rounds,
        "chosen": one.chosen,
        "test": None if test is None else test.mean,
        "test_std": None if test is None else test.std,
        "failures": "; ".join(one.failures),
    }


def frame(swept: Swept) -> pd.DataFrame:
    """One row a setting, nothing rounded. Scores are fractions (accuracy) or mse."""
    return pd.DataFrame([_row(one) for one in swept.tried])


def _score(value: OverSeeds | None) -> str:
    if value is None or not value.seeds:
        return ""
    return f"{value.mean:.4f}" + (f" ± {value.std:.4f}" if value.seeds > 1 else "")


def rich_sweep(swept: Swept) -> Table:
    """Setting, validation mean and standard deviation over seeds, rounds, and test for what was chosen."""
    metric, every = metric_name(swept.task), sum(one.test is not None for one in swept.tried)
    spent = "; ".join(
        f"{name}: {b['settings']} settings, {b['rounds x runs']} rounds x runs" for name, b in swept.budget.items()
    )
    table = Table(
        title=f"{swept.experiment.name}: chosen by validation {metric}", caption=f"spent on choosing: {spent}"
    )
    table.add_column("method")
    table.add_column("setting")
    test = "test (shown, no say in the choice)" if every > len(swept.chosen) else "test"
    for column in ("validation", "rounds", test):
        table.add_column(column, justify="right")
    table.add_column("")
    for one in swept.tried:
        said = "chosen" if one.chosen else "diverged" if one.failures else ""
        style = "bold" if one.chosen else "red" if one.failures else ""
        cells = (one.setting.method, shown(one.setting.values), _score(one.validation), str(one.rounds))
        table.add_row(*cells, _score(one.test), said, style=style)
    return table


def to_dict(swept: Swept) -> dict[str, Any]:
    """The same as JSON values: null where there is no number."""
    rows = json.loads(str(frame(swept).to_json(orient="records", double_precision=15)))
    return {"metric": metric_name(swept.task), "budget": dict(swept.budget), "settings": rows}


def write_sweep(swept: Swept, out: Path) -> None:
    """Write sweep.csv, sweep.png and, if a setting was chosen, chosen.toml into a folder."""
    with atomic_write(out / "sweep.csv") as file:
        file.write(frame(swept).to_csv(index=False, lineterminator="\n").encode())
    _draw(swept, out / "sweep.png")
    if swept.chosen:
        with atomic_write(out / "chosen.toml") as file:
            file.write(experiment_file(swept).encode())


def _draw(swept: Swept, path: Path) -> None:
    """Validation score against each swept hyper-parameter, one panel each; bars: standard deviation over seeds."""
    panels = list(dict.fromkeys((t.setting.method, key) for t in swept.tried for key in t.setting.values))
    figure = blank(max(4.0, 3.4 * len(panels)), 3.2)
    for place, (method, key) in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), place + 1)
        mine = [t for t in swept.tried if t.setting.method == method and t.validation.seeds]
        values = [t.setting.values[key] for t in mine]
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        x = values if numbers else [str(v) for v in values]
        for best, marker, colour in ((False, "o", "#0072B2"), (True, "*", "#D55E00")):
            part = [i for i, t in enumerate(mine) if t.chosen == best]
            y, bars = [mine[i].validation.mean for i in part], [mine[i].validation.std for i in part]
            label = "chosen" if best else "tried"
            axes.errorbar([x[i] for i in part], y, yerr=bars, fmt=marker, color=colour, label=label, capsize=2)
        if numbers and values and min(values) > 0 and max(values) / min(values) >= 20:
            axes.set_xscale("log")
        axes.set_xlabel(f"{method}: {key}")
        axes.set_ylabel(f"validation {metric_name(swept.task)}" if place == 0 else "")
        tidy(axes)
        if place == 0:
            axes.legend(fontsize=8, frameon=False)
    save(figure, path)


def experiment_file(swept: Swept) -> str:
    """The chosen settings as an experiment in TOML: one cell for each method, evaluated on test data."""
    experiment = swept.experiment
    head = {"name": f"{experiment.name}-chosen", "seeds": experiment.seeds, "first_seed": experiment.first_seed}
    parts = [_lines(head)]
    for one in swept.chosen:
        cell, method = one.setting.cell, one.setting.cell.methods[0]
        keys = ("data", "model", "rounds", "cohort", "sampling", "eval_every", "shared_init")
        values = cell.model_dump(mode="json", include={*keys})
        name = cell.id if len(swept.chosen) == 1 else f"{cell.id} {method.name}"
        parts.append("\n[[cells]]\n" + _lines({"id": name, **values, "splits": ["train", "test"]}))
        parts.append("\n[[cells.methods]]\n" + _lines(method.spec))
    return "".join(parts)


def _lines(values: dict[str, Any]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in values.items() if value is not None)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inside = (f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items() if v is not None)
        return "{ " + ", ".join(inside) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    return json.dumps(value)
