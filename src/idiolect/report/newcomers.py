"""What `personalize` writes: new clients' models, their scores, and scores against the number of own samples."""

import math
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import ScalarFormatter

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import StoreError, os_errors_as
from idiolect.core.files import no_empty_folders, write_text
from idiolect.core.rights import make_folder
from idiolect.metrics.base import Metric
from idiolect.report import text
from idiolect.report.figures import draw
from idiolect.report.html.payload import payload_of
from idiolect.report.html.render import PAGE, write_page
from idiolect.report.layout import Course
from idiolect.report.markdown import escaped
from idiolect.report.style import REPORT, Drawing, Looks, Style, blank, caption, coincide_caption, save, tidy
from idiolect.report.view.as_json import REPORT as AS_JSON
from idiolect.report.view.as_json import to_dict, write_json
from idiolect.report.view.folder import NEW_CLIENTS
from idiolect.report.view.from_csv import OWN_SAMPLES
from idiolect.report.view.parts import Census, Entry, Key, Part, View
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.analyse.outcomes import Line
from idiolect.study.run.finished import Loaded
from idiolect.study.run.personalized import Personalized
from idiolect.study.store.model_files import save_client_models
from idiolect.study.store.summary import over_seeds, summarise

CURVE = "figures/own-samples.png"


def write_newcomers(
    loaded: Loaded, made: Personalized, curve: pd.DataFrame | None, folder: Path, command: str
) -> list[str]:
    """Write models/, clients.csv, the report and, with a curve, own-samples.csv and its figure; return their names.

    The folder must not exist, or be empty: it appears complete or not at all. Raises `StoreError` otherwise.
    """
    check_new(folder)
    with no_empty_folders(folder.parent), os_errors_as(f"cannot write to '{folder}'"):
        make_folder(folder.parent, shared=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
        try:
            _fill(scratch, loaded, made, curve, command)
            os.replace(scratch, folder)
        finally:
            rmtree(scratch, ignore_errors=True)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def check_new(folder: Path) -> None:
    """Raise `StoreError` if the folder is there and holds anything."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreError(f"'{folder}' is not empty; use another --out, or delete it")


def _fill(folder: Path, loaded: Loaded, made: Personalized, curve: pd.DataFrame | None, command: str) -> None:
    for name, newcomers in made.made.items():
        save_client_models(
            folder / "models",
            name,
            newcomers.evaluator.client_models(newcomers.state, [name])[name],
            loaded.finished.simulation.objective,
            data=made.data,
            clients=made.data.clients,
            spec=loaded.cell.model,
            extra={"run": loaded.row.id, "round": loaded.row.round, "new client": True},
        )
    _csv(made.table(), folder / "clients.csv")
    if curve is not None:
        make_folder(folder / "figures", shared=True)
        _csv(curve, folder / OWN_SAMPLES)
        save(own_samples_figure(curve, loaded.finished.metrics[0], loaded.method.title), folder / CURVE)
    told = newcomers_dict(loaded, made, command)
    write_json(told, folder / AS_JSON)
    write_text(folder / "report.md", newcomers_text(loaded, made, told, curve=curve is not None), shared=True)
    write_page(payload_of(told), folder / PAGE)


def _csv(table: pd.DataFrame, path: Path) -> None:
    write_text(path, table.to_csv(index=False, lineterminator="\n"), shared=True)


def newcomers_dict(loaded: Loaded, made: Personalized, command: str) -> dict[str, Any]:
    """The new clients as `report.json`: one comparison of a method's named models, with a headline of its own."""
    data, row, metrics = made.data, loaded.row, loaded.finished.metrics
    shown = ALGORITHMS[row.method].title if row.label == row.method else row.label
    scores = {(row.label, model): made.scores(model) for model in made.made} if data.test.count else {}
    train, test = (tuple(map(int, split.sizes)) for split in (data.train, data.test))
    part = Part(
        id=row.cell,
        title=f"New clients of {row.label}",
        metric=metrics[0],
        metrics=tuple(metrics),
        task=metrics[0].task,
        seeds=(row.seed,),
        rounds=row.round,
        methods=(Entry(row.label, shown, row.method),),
        lines=tuple(_line(row.cell, key, one, metrics, row.round) for key, one in scores.items()),
        clients=tuple(data.clients),
        scores={key: {row.seed: one} for key, one in scores.items()},
        census=Census(tuple(data.clients), train, test),
        notes=tuple(data.notes),
    )
    told = to_dict(View(title=part.title, parts=(part,), name=row.id, command=command))
    count = f"{data.num_clients} new client{'s' if data.num_clients > 1 else ''}"
    headline = f"{count} have models; there are no test rows to score them."
    if scores:
        model, mean = next(iter(made.made)), part.lines[0].mean.mean
        unit = " %" if metrics[0].percent else ""
        value = f"{text.number(mean, metrics[0])}{unit}"
        headline = f"{count}: mean test {metrics[0].column} {value} with the {model} model."
    numbers = f"run {row.id}, round {row.round}; {data.train.count:,} training and {data.test.count:,} test rows"
    own = {"decision": NEW_CLIENTS, "headline": headline, "numbers": numbers, "chips": []}
    return {**told, **own, "cells": [{**cell, **own} for cell in told["cells"]]}


def _line(cell: str, key: Key, scores: ClientScores, metrics: Sequence[Metric], round: int) -> Line:
    """The line of one named model, of one seed."""
    whole, none = summarise(scores, metrics[0]), over_seeds([])
    pooled, mean, spread, worst10, worst, loss = (
        over_seeds([value]) for value in (whole.pooled, whole.mean, whole.std, whole.worst10, whole.worst, whole.loss)
    )
    others = {metric.name: over_seeds([scores.pooled[metric.name]]) for metric in metrics}
    return Line(
        cell, *key, metrics[0].name, pooled, mean, spread, worst10, worst, loss, others, None, None, (round,), none,
        None, 0
    )  # fmt: skip


def newcomers_text(loaded: Loaded, made: Personalized, told: Mapping[str, Any], *, curve: bool) -> str:
    """Write the page in Markdown. `told`: as `newcomers_dict` makes it; curve: whether the figure is there."""
    data, metric = made.data, loaded.finished.metrics[0]
    known = sorted({*data.clients} & {*loaded.data.clients})
    own = f"rounds that each new client trained by itself: {made.rounds}"
    facts = [own + ("" if made.rounds else " (nothing private to train)")]
    if known:
        facts.append(
            f"{len(known)} of them have names of clients that trained, and are served as new: {_some(known)}"
        )
    untested = [name for name, count in zip(data.clients, data.test.sizes, strict=True) if not count]
    if untested:
        facts.append(f"without test samples, hence without a score: {_some(untested)}")
    facts += data.notes
    parts = [
        f"# New clients of {escaped(loaded.row.label)}",
        f"**{escaped(told['headline'])}**",
        escaped(told["numbers"]),
        "\n".join([*(f"- {escaped(fact)}" for fact in facts), f"- made by: `{told['command']}`"]),
        *([_table(told["cells"][0], metric)] if data.test.count else []),
        *([f"![{metric.column} against the number of own samples]({CURVE})"] if curve else []),
        "`clients.csv` has every client's scores, `models/` its models.",
    ]
    return "\n\n".join(parts) + "\n"


def _table(cell: Mapping[str, Any], metric: Metric) -> str:
    """Every client's test score with each named model, and the mean over clients."""
    clients, models = cell["clients"], {one["key"]: one["model"] for one in cell["models"]}

    def row(name: str, count: object, values: Iterable[float | None]) -> str:
        shown = " | ".join(text.number(math.nan if value is None else value, metric) for value in values)
        return f"| {name} | {count} | {shown} |"

    lines = [f"Test {metric.column}{', %' if metric.percent else ''}:", ""]
    lines += [f"| client | samples | {' | '.join(models.values())} |", "|---|---:|" + "---:|" * len(models)]
    for i, client in enumerate(clients["names"]):
        lines.append(row(escaped(client), clients["train"][i], (clients["scores"][key][i] for key in models)))
    means = (line["mean"]["mean"] for line in cell["lines"])
    return "\n".join([*lines, row("mean of the clients", "", means).replace("|  |", "| |")])


def _some(names: Sequence[str], most: int = 10) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def own_samples_figure(curve: pd.DataFrame, metric: Metric, method: str, style: Style = REPORT) -> Drawing:
    """Draw the mean over new clients of the test score against the number of own samples, a line a named model.

    Bands are the middle half of the clients.
    """
    models = list(dict.fromkeys(curve["model"]))
    looks = Looks([(method, model) for model in models], style=style)
    figure = blank(6.4, 3.7, style)
    axes = figure.subplots()
    tidy(axes, style)
    counts = sorted(set(curve["samples"].tolist()))
    courses: list[Course] = []
    edges: list[float] = []
    for model in models:
        rows = curve[curve["model"] == model]
        at, values = np.asarray(rows["samples"]), metric.unit * np.asarray(rows[metric.key], float)
        groups = [values[(at == count) & np.isfinite(values)] for count in counts]
        mean = np.array([float(np.mean(group)) for group in groups])
        low, high = (np.array([np.quantile(group, share) for group in groups]) for share in (0.25, 0.75))
        edges += [*low, *high, *mean]
        courses.append(Course(method, model, np.array(counts, float), mean, np.full(len(counts), np.nan)))
        axes.fill_between(counts, low, high, color=looks.colour(method, model), alpha=0.15, linewidth=0)
    stacks = draw(axes, courses, looks, (min(edges), max(max(edges), min(edges) + 1e-9)), dotted=True)
    axes.set_xscale("log")
    axes.set_xticks(counts)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.minorticks_off()
    axes.set_xlabel("own training samples, at most", fontsize=style.label)
    axes.set_ylabel(text.score_axis(metric), fontsize=style.label)
    looks.legend(figure, stacks)
    clients = curve["client"].nunique()
    alike = "" if style.beside else coincide_caption(stacks)
    caption(figure, [f"lines: mean of {clients} new clients; bands: the middle half of them", alike])
    return figure
