"""The report of a sweep: its figure, table and CSV file, its page, and its chosen settings as an experiment file."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import tomli_w
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter
from rich import box
from rich.table import Table

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import StoreError
from idiolect.core.files import write_text
from idiolect.data.federated import TaskKind
from idiolect.metrics.base import Metric
from idiolect.report.layout import NOT_CHOSEN
from idiolect.report.markdown import escaped, markdown_extra
from idiolect.report.sections.tables import settings_extra
from idiolect.report.style import (
    GREY,
    HIT,
    MISS,
    PALE,
    REPORT,
    Drawing,
    Style,
    beside,
    blank,
    caption,
    high,
    plain,
    save,
    spread_caption,
    tidy,
)
from idiolect.report.text import SPREAD, score
from idiolect.study.search.choose import Swept, Tried
from idiolect.study.search.engine import Setting
from idiolect.study.search.space import shown
from idiolect.study.spec.experiment import Experiment, metrics_of
from idiolect.study.store.summary import OverSeeds, half_width

_FEW = 10  # up to this many values are categories side by side; more lie on a numeric scale
_WIDE = 50  # a scale is logarithmic if the largest value is this many times the smallest


def sweep_figure(swept: Swept, style: Style = REPORT) -> Drawing:
    """Draw a row for each method and a panel for each hyper-parameter: mean with its 95 % interval over seeds.

    The chosen setting is a star, the others are grey. Settings that share a value are side by side above it. One that
    diverged is a cross at the bottom; one that is far worse than most is a triangle at the end of the axis.
    """
    methods = list(dict.fromkeys(one.setting.method for one in swept.tried))
    rows = [[one for one in swept.tried if one.setting.method == method] for method in methods]
    keys = [_swept_keys(row) for row in rows]
    columns = max(map(len, keys))
    width = 1.6 + 3.1 * columns
    figure = blank(width, 0.3 + high(2.7, width, style, 1.7) * len(rows), style)
    grid = figure.subplots(len(rows), columns, squeeze=False, sharey="row")
    metric = swept.metric
    unit, name = metric.unit, f"{metric.column}, %" if metric.percent else metric.column
    beyond = False
    for row, method, tried, panels in zip(grid, methods, rows, keys, strict=True):
        worst = _worst_shown([unit * t.validation.mean for t in tried if t.validation.seeds], metric)
        beyond |= worst is not None
        for axes, key in zip(row, panels, strict=False):
            _panel(axes, tried, key, metric, worst, PALE if swept.chosen else HIT, style)
            axes.set_xlabel(plain(key), fontsize=style.label)
        for axes in row[len(panels) :]:
            axes.set_axis_off()
        row[0].set_ylabel(f"validation {name}", fontsize=style.label)
        if style.titled or len(rows) > 1:
            row[0].set_title(ALGORITHMS[method].title, fontsize=style.label, loc="left", fontweight="bold")
        if worst is not None:
            row[0].set_ylim(**{"bottom" if swept.metric.higher else "top": worst})
    beside(figure, _legend(swept, beyond, style.scale))
    counts = [seeds for one in swept.tried if (seeds := one.validation.seeds)]
    caption(figure, [spread_caption("points", "bars", counts, swept.experiment.seeds)] if counts else [])
    return figure


def _worst_shown(values: Sequence[float], metric: Metric) -> float | None:
    """The worst score on the axis if some settings are so bad that they would hide the others, otherwise None."""
    sign = 1 if metric.higher else -1
    order = sorted((sign * v for v in values), reverse=True)
    if len(order) < 4:
        return None
    best, usual = order[0], order[3 * len(order) // 4]
    end = usual - 1.5 * (best - usual)
    return sign * end if best > usual and order[-1] < end else None


def _swept_keys(tried: Sequence[Tried]) -> list[str]:
    """The hyper-parameters with more than one tried value; the first one if there is none."""
    keys = list(dict.fromkeys(key for one in tried for key in one.setting.values))
    return [key for key in keys if len({repr(one.setting.values[key]) for one in tried}) > 1] or keys[:1] or [""]


def _panel(
    axes: Axes, tried: Sequence[Tried], key: str, metric: Metric, worst: float | None, other: str, style: Style
) -> None:
    places = _places(axes, [one.setting.values.get(key, "defaults") for one in tried])
    for one, x in zip(tried, places, strict=True):
        y = metric.unit * one.validation.mean
        colour, marker, size = (MISS, "*", 12) if one.chosen else (other, "o", 4.5)
        if one.failures:
            _at_end(axes, x, "x", GREY, 0.04, style.scale)
        elif worst is not None and metric.better(worst, y):
            _at_end(axes, x, "v" if metric.higher else "^", other, 0.04 if metric.higher else 0.96, style.scale)
        elif one.validation.seeds:
            bar = _bar(y, metric.unit * one.validation.half_width, metric) if one.validation.seeds > 1 else None
            look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": size * style.scale}
            look |= {"linestyle": "none", "elinewidth": 0.9 * style.scale, "zorder": 4 if one.chosen else 3}
            axes.errorbar([x], [y], yerr=bar, **look)
    tidy(axes, style)
    axes.margins(x=0.06)


def _bar(y: float, half: float, metric: Metric) -> list[list[float]]:
    """How far an interval reaches below and above its mean, at most to the possible values."""
    low, high = metric.bounds
    return [[min(half, y - low)], [min(half, high - y)]]


def _at_end(axes: Axes, x: float, marker: str, colour: str, height: float, scale: float) -> None:
    """Draw a mark at the end of the axis, for a setting without a score that the axis can show."""
    axes.plot(
        [x], [height], marker, color=colour, markersize=6 * scale, transform=axes.get_xaxis_transform(), clip_on=False
    )


def _places(axes: Axes, values: Sequence[Any]) -> list[float]:
    """Set the x axis's scale and ticks; returns the x position of each setting."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    distinct: list[Any] = sorted({*values}) if numbers else list(dict.fromkeys(map(str, values)))
    if numbers and len(distinct) > _FEW:
        if distinct[0] > 0 and distinct[-1] / distinct[0] >= _WIDE:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
        return [float(v) for v in values]
    ticks = [f"{v:.6g}" if numbers else v for v in distinct]
    axes.set_xticks(range(len(ticks)), ticks, rotation=30 if max(map(len, ticks)) * len(ticks) > 30 else 0)
    axes.set_xlim(-0.6, len(ticks) - 0.4)
    groups = [distinct.index(v if numbers else str(v)) for v in values]
    return [g + _aside(groups[:i].count(g), groups.count(g)) for i, g in enumerate(groups)]


def _aside(nth: int, of: int) -> float:
    """The offset of the nth of several settings from the value that they share."""
    return (nth - (of - 1) / 2) * min(0.12, 0.8 / of)


def _legend(swept: Swept, beyond: bool, scale: float) -> list[Line2D]:
    tried, other = (NOT_CHOSEN, PALE) if swept.chosen else ("tried", HIT)
    end = "v" if swept.metric.higher else "^"
    looks = [("o", other, 4.5, tried), ("*", MISS, 12, "chosen"), (end, other, 6, "worse than the axis shows")]
    looks.append(("x", GREY, 6, "diverged"))
    occurs = [
        any(not one.chosen for one in swept.tried),
        bool(swept.chosen),
        beyond,
        any(one.failures for one in swept.tried),
    ]
    return [
        Line2D([], [], linestyle="none", marker=marker, color=colour, markersize=size * scale, label=label)
        for (marker, colour, size, label), shown in zip(looks, occurs, strict=True)
        if shown
    ]


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
    write_text(out / "sweep.csv", frame(swept).to_csv(index=False, lineterminator="\n"), shared=True)
    written = [out / "sweep.csv", *save(sweep_figure(swept), out / "sweep.png")]
    if swept.chosen:
        written.append(out / "chosen.toml")
        write_text(written[-1], experiment_file(swept), shared=True)
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


READ = f"""\
Scores are means over the seeds; what follows ± is {SPREAD}. Only validation scores
choose: the last column names each method's best setting. Its test score was measured afterwards. `sweep.csv` has
every number unrounded, with standard deviations."""
SHOWN = "Test scores of the other settings are shown because of `--show-test`; they were not used for the choice."


def write_sweep(swept: Swept, out: Path, command: str = "") -> list[Path]:
    """Write sweep.csv, sweep.png, sweep.svg, chosen.toml if a setting was chosen, and last report.md; their paths.

    command: reproduces the sweep. Every file is written atomically. Raises `StoreError` if one cannot be written.
    """
    written = write_files(swept, out)
    page = out / "report.md"
    write_text(page, sweep_text(swept, command), shared=True)
    return [page, *written]


def sweep_text(swept: Swept, command: str = "") -> str:
    """The page in Markdown: how it was made, the table of settings, the figure, what was chosen, what failed."""
    cell, metric = swept.experiment.cells[0], swept.metric
    name = f"{metric.column} in %" if metric.percent else metric.column
    name += "" if metric.higher else " (lower is better)"
    seeds = ", ".join(str(seed) for seed in swept.experiment.seed_list)
    facts = [
        f"made by: `{command}`" if command else "",
        f"data: {cell.data.get('title') or cell.id}",
        f"seeds: {seeds}",
    ]
    facts += [
        f"spent on choosing for {method}: {spent['settings']} settings, {spent['rounds x runs']} rounds x runs"
        for method, spent in swept.budget.items()
    ]
    failures = [f"- {escaped(failure)}" for one in swept.tried for failure in one.failures]
    all_tested = sum(one.test is not None for one in swept.tried) > len(swept.chosen)
    parts = [
        f"# {escaped(swept.experiment.name)}: chosen by validation {name}",
        "\n".join(f"- {fact}" for fact in facts if fact),
        markdown_extra(settings_extra([one.to_dict() for one in swept.tried], metric)),
        f"{READ} {SHOWN if all_tested else ''}".strip(),
        "![Validation scores against every setting that was tried](sweep.png)",
        "What was chosen, to run: `idiolect run chosen.toml`." if swept.chosen else "**Every setting diverged.**",
        "\n".join(["## Settings that diverged", "", *failures]) if failures else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
