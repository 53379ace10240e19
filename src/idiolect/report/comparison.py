"""A comparison as a table of plain strings, which all output formats share."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from idiolect.metrics.base import Metric
from idiolect.metrics.registry import METRICS
from idiolect.report import text
from idiolect.study.analyse.outcomes import FEDAVG, OWN, Line, in_words
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell, Method, run_id
from idiolect.study.spec.published import published_metric

SELECTIONS = {
    "last": "last round",
    "last-10": "mean of the last 10 rounds",
    "best-validation": "round chosen on validation data",
    "best-test": "BEST ROUND ON TEST DATA (as published; optimistic)",
}
HURT = (f"hurt vs {FEDAVG}", f"hurt vs {OWN}", "hurt vs global")
"""The column of clients that a plain global model serves better: FedAvg's, the method's own, or some of each."""
WORDS = frozenset({"method", "model", "verdict"})  # text columns, aligned left


@dataclass(frozen=True)
class Table:
    """A comparison as strings. groups: the rows of each method; best: (group, row) of the best scores.

    others: the columns of the metrics other than the compared one.
    """

    title: str
    columns: tuple[str, ...]
    groups: tuple[tuple[tuple[str, ...], ...], ...]
    best: frozenset[tuple[int, int]]
    notes: tuple[str, ...]
    others: tuple[str, ...] = ()


def cell_title(cell: Cell) -> str:
    """The cell's title, or its id."""
    return cell.title or cell.id


def statuses(results: Results, cell: Cell, method: Method) -> Counter[str]:
    """Count a method's seeds by status: done, diverged, unfinished, not run."""
    rows = [results.rows.get(run_id(cell.id, method.title, seed)) for seed in results.experiment.seed_list]
    names = {"running": "unfinished"}
    return Counter("not run" if row is None else names.get(row.status, row.status) for row in rows)


def table_of(results: Results, cell: Cell) -> Table:
    """Build a cell's table: one row for each method and named model, with published values if the cell has any."""
    lines = {(line.method, line.model): line for line in results.lines if line.cell == cell.id}
    grouped = [[lines[m.title, name] for name in results.names(cell, m)] for m in cell.methods]
    metrics = results.metrics(cell)
    metric, *others = metrics
    has_published = any(line.published is not None for line in lines.values())
    scale = f"{metric.column} in %" if metric.percent else metric.column
    scale += "" if metric.higher else " (lower is better)"
    seeds = results.experiment.seeds
    over = f"{seeds} seeds, ± {text.WIDTH}" if seeds > 1 else "1 seed"
    measured = {name for line in lines.values() for name, value in line.metrics.items() if not math.isnan(value.mean)}
    other_columns = tuple(other.column for other in others if other.name in measured)
    published_columns = ("published", "difference", "verdict") if has_published else ()
    spread = ("client mean", "worst 10 %", "hurt vs Local", hurt_column(list(lines.values())))
    columns = ("method", "model", metric.column, *other_columns, *published_columns, *spread, "seconds")
    return Table(
        title=f"{cell_title(cell)}: test {scale}, {SELECTIONS[cell.select]}, {over}",
        columns=columns,
        groups=tuple(
            tuple(_row(line, columns, first=i == 0, absent=absent) for i, line in enumerate(group))
            for group, absent in zip(grouped, (_absent(results, cell, m) for m in cell.methods), strict=True)
        ),
        best=_best(grouped, metric),
        notes=_notes(results, cell, grouped),
        others=other_columns,
    )


def hurt_column(lines: Sequence[Line]) -> str:
    """The heading that says with whose global model the clients of a table are compared."""
    whose = {one for line in lines for one in line.global_of}
    return f"hurt vs {next(iter(whose))}" if len(whose) == 1 else HURT[2]


def _row(line: Line, columns: tuple[str, ...], *, first: bool, absent: str) -> tuple[str, ...]:
    """Build one row. Values of the whole method are in its first row only."""
    ran, metric, published = line.pooled.seeds > 0, METRICS[line.metric], published_metric(line.published_metric)
    values = {
        **{METRICS[name].column: text.score(value, METRICS[name]) for name, value in line.metrics.items()},
        "method": line.method if first else "",
        "model": line.model,
        metric.column: text.score(line.pooled, metric) if ran else absent,
        "published": text.published(line.published, published, metric),
        "difference": text.difference(line.difference, line.interval, published),
        "verdict": "" if line.published is None or line.verdict is None else in_words(line.verdict, line.published),
        "client mean": text.score(line.mean, metric),
        "worst 10 %": text.score(line.worst10, metric),
        "hurt vs Local": text.share(line.hurt_local),
        **{column: text.share(line.hurt_global) for column in HURT},
        "seconds": text.seconds(line.seconds) if first else "",
    }
    return tuple(values[column] for column in columns)


def _absent(results: Results, cell: Cell, method: Method) -> str:
    """The reason why a method has no scores, as text."""
    counts = statuses(results, cell, method)
    for status in ("diverged", "unfinished"):
        if counts[status]:
            return status
    return "not evaluated" if counts["done"] else "not run"


def _best(grouped: list[list[Line]], metric: Metric) -> frozenset[tuple[int, int]]:
    """The (group, row) of the best score, and of every score that reads the same."""
    line_at = {(i, j): line for i, group in enumerate(grouped) for j, line in enumerate(group)}
    means = {k: line.pooled.mean for k, line in line_at.items() if not math.isnan(line.pooled.mean)}
    if not means:
        return frozenset()
    values = list(means.values())
    best = text.number(values[metric.best(values)], metric)
    return frozenset(k for k, mean in means.items() if text.number(mean, metric) == best)


def _notes(results: Results, cell: Cell, grouped: list[list[Line]]) -> tuple[str, ...]:
    """The notes below a table: the metrics of published values, the missing seeds, the selected rounds."""
    notes: list[str] = []
    lines = [line for group in grouped for line in group if line.published is not None]
    for name in dict.fromkeys(line.published_metric for line in lines if line.published_metric != line.metric):
        column = published_metric(name).column
        notes.append(
            f"{column} before a published value: it is of that metric, and so are its difference and verdict"
        )
    published = [line.published for line in lines if line.published is not None]
    if any(value.std is not None for value in published):
        notes.append("± in a published value: what the paper gives, its standard deviation")
    if any(value.half_width is not None for value in published):
        notes.append("± in a published value: half of the paper's confidence interval, taken as one of 95 %")
    notes += _margins(lines)
    all_lines = [line for group in grouped for line in group]
    if hurt_column(all_lines) == HURT[2] and any(line.global_of for line in all_lines):
        notes.append(f"{HURT[2]}: FedAvg's model in the seeds where FedAvg ended, elsewhere the method's own")
    for method, group in zip(cell.methods, grouped, strict=True):
        counts = statuses(results, cell, method)
        seeds = results.experiment.seeds
        missing = [f"{counts[s]} {s}" for s in ("diverged", "unfinished", "not run") if counts[s]]
        if missing and counts["done"]:
            notes.append(f"{method.title}: over {counts['done']} of {seeds} seeds ({', '.join(missing)})")
        elif missing and seeds > 1:
            notes.append(f"{method.title}: {', '.join(missing)} of {seeds} seeds")
        if cell.select in ("best-validation", "best-test"):
            notes += [
                f"{method.title} {line.model}: round{'s' if len(line.rounds) > 1 else ''} "
                + ", ".join(str(r) for r in line.rounds)
                for line in group
                if line.rounds
            ]
    return tuple(notes)


def _margins(lines: Sequence[Line]) -> list[str]:
    """The margins of the published values, how data differ from the paper's, and what explains a difference."""
    margins: dict[str, list[str]] = {}
    reasons: list[str] = []
    for line in lines:
        if (published := line.published) is None:
            continue
        metric = published_metric(line.published_metric)
        points = " point" if published.within == 1 else " points"
        unit = points if metric.percent else f" in {metric.column}"
        margins.setdefault(f"{published.within:g}{unit}", []).append(f"{line.method} {line.model}")
        reasons += [f"other data: {published.other_data}"] if published.other_data else []
        if published.explained and line.verdict == "differs":
            reasons.append(f"{line.method} {line.model} differs, explained: {published.explained}")
    if len(margins) == 1:
        notes = [f"margin: {margin}" for margin in margins]
    else:
        notes = [f"margin {margin}: {', '.join(names)}" for margin, names in margins.items()]
    return [*notes, *dict.fromkeys(reasons)]
