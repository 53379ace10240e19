"""What `personalize` writes: new clients' models, their scores, and scores against the number of own samples."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree

import numpy as np
import pandas as pd
from matplotlib.ticker import ScalarFormatter

from idiolect.core.errors import StoreError
from idiolect.core.files import atomic_write, no_empty_folders
from idiolect.core.rights import make_folder
from idiolect.metrics.base import Metric
from idiolect.report import text
from idiolect.report.figures import draw
from idiolect.report.layout import Course
from idiolect.report.markdown import escaped
from idiolect.report.style import REPORT, Drawing, Looks, Style, blank, caption, coincide_caption, save, tidy
from idiolect.study.run.finished import Loaded
from idiolect.study.run.personalized import Personalized
from idiolect.study.store.model_files import save_client_models

CURVE = "figures/own-samples.png"


def write_newcomers(
    loaded: Loaded, made: Personalized, curve: pd.DataFrame | None, folder: Path, command: str
) -> list[str]:
    """Write models/, clients.csv, report.md and, with a curve, own-samples.csv and its figure; return their names.

    The folder must not exist, or be empty: it appears complete or not at all. Raises `StoreError` otherwise.
    """
    check_new(folder)
    with no_empty_folders(folder.parent):
        try:
            make_folder(folder.parent, shared=True)
            scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
        except OSError as error:
            raise StoreError(f"cannot write to '{folder}': {error.strerror or error}") from error
        try:
            _fill(scratch, loaded, made, curve, command)
            os.replace(scratch, folder)
        except OSError as error:
            raise StoreError(f"cannot write to '{folder}': {error.strerror or error}") from error
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
        _csv(curve, folder / "own-samples.csv")
        save(own_samples_figure(curve, loaded.finished.metrics[0], loaded.method.title), folder / CURVE)
    with atomic_write(folder / "report.md", shared=True) as file:
        file.write(newcomers_text(loaded, made, curve, command).encode())


def _csv(table: pd.DataFrame, path: Path) -> None:
    with atomic_write(path, shared=True) as file:
        file.write(table.to_csv(index=False, lineterminator="\n").encode())


def newcomers_text(loaded: Loaded, made: Personalized, curve: pd.DataFrame | None, command: str) -> str:
    """Write the page in Markdown."""
    data, row, metric = made.data, loaded.row, loaded.finished.metrics[0]
    known = sorted({*data.clients} & {*loaded.data.clients})
    facts = [
        f"run: {row.id}, {row.round} rounds",
        f"{data.num_clients} new clients with {data.train.count:,} training and {data.test.count:,} test samples",
        f"rounds that each new client trained by itself: {made.rounds}"
        + ("" if made.rounds else " (nothing private to train)"),
    ]
    if known:
        facts.append(
            f"{len(known)} of them have names of clients that trained, and are served as new: {_some(known)}"
        )
    untested = [name for name, count in zip(data.clients, data.test.sizes, strict=True) if not count]
    if untested:
        facts.append(f"without test samples, hence without a score: {_some(untested)}")
    facts += data.notes
    parts = [
        f"# New clients of {escaped(row.label)}",
        "\n".join([*(f"- {escaped(fact)}" for fact in facts), f"- made by: `{command}`"]),
    ]
    if data.test.count:
        parts.append(_table(made, metric))
    if curve is not None:
        parts += [f"![{metric.column} against the number of own samples]({CURVE})"]
    parts.append("`clients.csv` has every client's scores, `models/` its models.")
    return "\n\n".join(parts) + "\n"


def _table(made: Personalized, metric: Metric) -> str:
    """Every client's test score with each named model, and the mean over clients."""
    scores = {model: made.scores(model) for model in made.made}
    lines = [f"Test {metric.column}{', %' if metric.percent else ''}:", ""]
    lines += [f"| client | samples | {' | '.join(scores)} |", "|---|---:|" + "---:|" * len(scores)]
    for i, client in enumerate(made.data.clients):
        values = " | ".join(text.number(float(s.values[metric.name][i]), metric) for s in scores.values())
        lines.append(f"| {escaped(client)} | {int(made.data.train.sizes[i])} | {values} |")
    means = " | ".join(text.number(made.mean(model, metric), metric) for model in scores)
    return "\n".join([*lines, f"| mean of the clients | | {means} |"])


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
