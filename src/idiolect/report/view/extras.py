"""Small tables next to a cell's main one, such as published gaps and times, and the settings that were tried."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import METRICS
from idiolect.report import text
from idiolect.report.view.parts import Extra, Times
from idiolect.study.analyse.outcomes import Line, in_words
from idiolect.study.analyse.pairs import Pair, pairs_of, reference_of
from idiolect.study.analyse.results import Results, chosen, validation_score
from idiolect.study.run.newcomers import new_lines, refusals
from idiolect.study.search.space import shown
from idiolect.study.spec.experiment import Cell
from idiolect.study.spec.published import published_metric
from idiolect.study.store.summary import OverSeeds

_WIDE = 50  # a scale is logarithmic if the largest value is this many times the smallest


def dimensions(runs: Sequence[Mapping[str, Any]], score_title: str) -> dict[str, Any] | None:
    """The sweep of the page's data; None if nothing was tried.

    runs: {"method", "values": hyper-parameter -> value, "score", "chosen"}. One dimension for each hyper-parameter
    that takes several values; texts and truth values are categories.
    """
    if not runs:
        return None
    keys = list(dict.fromkeys(key for run in runs for key in run["values"]))
    several = [key for key in keys if len({repr(run["values"].get(key)) for run in runs}) > 1] or keys[:1]
    columns = {key: [_plain(run["values"].get(key)) for run in runs] for key in several}
    return {
        "dimensions": [_dimension(key, columns[key]) for key in several],
        "runs": [
            {
                "method": run["method"],
                "values": [columns[key][place] for key in several],
                "score": run["score"],
                "chosen": bool(run["chosen"]),
            }
            for place, run in enumerate(runs)
        ],
        "score_title": score_title,
    }


def _plain(value: Any) -> Any:
    """A number, a text, or None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _dimension(key: str, values: Sequence[Any]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in known):
        return {"title": key, "log": False, "values": list(dict.fromkeys(str(value) for value in known))}
    return {"title": key, "log": bool(known) and min(known) > 0 and max(known) / min(known) >= _WIDE}


def tuned_sweep(results: Results, cell: Cell) -> dict[str, Any] | None:
    """The settings of a cell whose methods are tuned; None for any other cell, and before any has a score."""
    if not cell.tune:
        return None
    best = {one.title for one in results.best(cell).values()}
    runs: list[dict[str, Any]] = [
        {
            "method": method.title,
            "values": {**hyperparameters(ALGORITHMS[method.name]), **(method.model_extra or {})},
            "score": validation_score(results, cell, method, results.names(cell, method)[0]).mean,
            "chosen": method.title in best,
        }
        for method in cell.methods
    ]
    title = f"validation {results.metric(cell).column}"
    return dimensions(runs, title) if any(np.isfinite(run["score"]) for run in runs) else None


FEW = 5  # seeds, below which a table of differences warns
NAMED = 5  # clients that a table names


def few_seeds(seeds: int, least: float, metric: Metric) -> str:
    """Say what so few seeds cannot show. least: the smallest difference that they can; NaN if it is not known."""
    unit = "points" if metric.percent else metric.column
    shown = text.number(least / metric.unit, metric)
    known = not math.isnan(least) and float(shown) > 0
    bound = f", and no difference below {shown} {unit}" if known else ""
    if seeds > 2:
        return f"{seeds} seeds are few: intervals and p values are rough{bound and f'{bound} can be shown'}."
    return (
        f"Two seeds show only a mean difference of more than 12.7 times its standard error{bound}. A smaller one may "
        "exist, and so may runs that fail now and then: use five seeds or more."
    )


def extras(results: Results, cell: Cell, pairs: Sequence[Pair] | None = None) -> list[Extra]:
    """Build the small tables that a cell specifies. pairs: `pairs_of` the cell, if they are known already."""
    tables: list[Extra] = []
    seeds = results.experiment.seeds
    if _is_paired(results, cell):
        known = pairs_of(results, cell) if pairs is None else pairs
        tables = [pairs_extra(known, reference_of(results, cell), results.metric(cell), seeds)]
    if newcomers := _newcomers(results, cell):
        tables.append(newcomers)
    if cell.gaps:
        rows = tuple(
            (
                f"{line.gap.larger} minus {line.gap.smaller}",
                text.compared(line.measured, METRICS["accuracy"]),
                f"{line.gap.value:.1f}",
                text.difference(line.difference, line.interval, METRICS["accuracy"]),
                in_words(line.verdict, line.published),
            )
            for line in results.gaps(cell)
        )
        tables.append(
            Extra(
                f"Published gaps, in points{_over(seeds)}",
                ("gap", "measured", "published", "difference", "verdict"),
                rows,
            )
        )
    if further := [line for line in results.further if line.cell == cell.id]:
        tables.append(_further(further, seeds))
    if (times := times_of(results, cell)) is not None:
        tables.append(_times(times, cell))
    if cell.tune:
        metric = results.metric(cell)
        rows = tuple(
            (
                choice.method,
                str(choice.tried),
                choice.line.method,
                choice.line.model,
                text.score(choice.validation, metric),
                text.score(choice.line.pooled, metric),
                text.score(choice.line.mean, metric),
                text.score(choice.line.worst10, metric),
            )
            for choice in chosen(results, cell)
        )
        header = ("method", "tried", "chosen", "model", "validation", "test", "test, client mean", "test, worst 10 %")
        tables.append(Extra(f"Settings chosen on validation data{_over(seeds)}", header, rows))
    return tables


def _over(seeds: int) -> str:
    """What follows ± in a table's measured numbers; empty for one seed, which has no ±."""
    return f"; ± {text.WIDTH} over seeds" if seeds > 1 else ""


def _is_paired(results: Results, cell: Cell) -> bool:
    """Whether methods can be compared: several seeds, and neither settings to choose among nor times to measure."""
    return results.experiment.seeds > 1 and not cell.tune and not is_timed(cell)


def _further(lines: Sequence[Line], seeds: int) -> Extra:
    """Build the table of the models' second, third, ... published values."""
    rows: list[tuple[str, ...]] = []
    for line in lines:
        published, metric = line.published, published_metric(line.published_metric)
        if published is not None and line.verdict is not None:
            measured = "not measured" if line.compared is None else text.compared(line.compared, metric)
            numbers = measured, text.published(published, metric, metric)
            difference = text.difference(line.difference, line.interval, metric)
            verdict = in_words(line.verdict, published)
            rows.append((line.method, line.model, metric.column, *numbers, difference, verdict))
    header = ("method", "model", "metric", "measured", "published", "difference", "verdict")
    return Extra(f"Other published values{_over(seeds)}", header, tuple(rows))


def _newcomers(results: Results, cell: Cell) -> Extra | None:
    """Known clients against the held-out ones, whom each method served as new clients; None without any."""
    metric, refused = results.metric(cell), refusals(results, cell)
    rows = [
        (
            line.method,
            line.model,
            text.score(line.known, metric),
            text.score(line.new, metric),
            text.difference(line.mean, line.gap, metric),
        )
        for line in new_lines(results, cell)
    ]
    rows += [(method, why, *[text.MISSING] * 3) for method, why in refused.items()]
    over = _over(results.experiment.seeds)
    title = f"New clients, held out of training: test {metric.column}, mean of the clients{over}"
    return Extra(title, ("method", "model", "known", "new", "new minus known"), tuple(rows)) if rows else None


def pairs_extra(
    pairs: Sequence[Pair], compared_with: tuple[str, str], metric: Metric, seeds: int, *, tested: bool = True
) -> Extra:
    """Compare every named model with local training, or the first one: over all samples, and client by client.

    tested: whether the scores over all samples are known for each seed; without them the table has no differences.
    """
    title, model = compared_with
    rows = tuple(
        (
            pair.method,
            pair.model,
            text.difference(None if pair.difference is None else pair.difference.mean, pair.difference, metric),
            text.p_value(pair.p),
            str(pair.clients.better),
            str(pair.clients.worse),
            str(pair.clients.unclear),
            text.some(pair.clients.hurt, NAMED),
        )
        for pair in pairs
    )
    header = ("method", "model", "difference", "p, Holm", "gain", "lose", "no difference", "clients that lose")
    reference = title if title == model else f"{title} {model}"
    what = f"Compared with {reference}: paired over {seeds} seeds, 95 % interval; clients beyond noise"
    if not tested:
        what = f"Compared with {reference}: {metric.column} over all samples is not tested"
        what += f"; clients beyond noise, {seeds} seeds"
    least = max((pair.least for pair in pairs if not math.isnan(pair.least)), default=math.nan)
    few = f". {few_seeds(seeds, least, metric)}" if tested and 2 <= seeds < FEW else ""
    return Extra(f"{what}{few}", header, rows)


def is_timed(cell: Cell) -> bool:
    """Whether any method of the cell has published seconds per round."""
    return any(method.published_seconds for method in cell.methods)


def times_of(results: Results, cell: Cell) -> Times | None:
    """The means over the finished runs and the published values; None without published seconds per round."""
    published = {method.title: method.published_seconds for method in cell.methods if method.published_seconds}
    if not published:
        return None
    seconds = {method.title: results.round_seconds(cell, method) for method in cell.methods}
    measured = {title: value.mean for title, value in seconds.items() if value.seeds}
    counts = tuple(value.seeds for value in seconds.values() if value.seeds)
    return Times(min(published, key=lambda title: published[title]), measured, published, counts)


def _times(times: Times, cell: Cell) -> Extra:
    """Build the table of seconds per round, also as multiples of the paper's fastest method."""

    def column(values: Mapping[str, float], form: Callable[[float], str]) -> list[str]:
        return [form(values[m.title]) if m.title in values else text.MISSING for m in cell.methods]

    rows = zip(
        [method.title for method in cell.methods],
        column(times.measured, text.value),
        column(times.multiples(times.measured), "{:.2f}".format),
        column(times.published, "{:g}".format),
        column(times.multiples(times.published), "{:.2f}".format),
        strict=True,
    )
    header = ("method", "measured", f"times {times.base}", "published", f"times {times.base}, published")
    return Extra(
        "Seconds per round, without compiling; on another machine only the ratios compare", header, tuple(rows)
    )


def diagnostics(results: Results, cell: Cell) -> Extra | None:
    """Build the table of each run's last diagnostics; None if no method of the cell has any."""
    rows = tuple(
        (row.label, str(row.seed), name, str(course[-1][0]), text.value(course[-1][1]))
        for row in results.started()
        if row.cell == cell.id
        for name, course in results.store.diagnostics(row.id).items()
    )
    header = ("method", "seed", "diagnostic", "round", "value")
    return Extra("Diagnostics, when last evaluated", header, rows) if rows else None


def settings_extra(tried: Sequence[Mapping[str, Any]], metric: Metric) -> Extra:
    """Build the table of a sweep's settings with their scores. tried: records, as `Tried.to_dict` makes them."""

    def scored(of: Sequence[Any] | None) -> str:
        return text.MISSING if of is None else text.score(OverSeeds(*of), metric)

    rows = tuple(
        (
            str(one["method"]),
            shown(one["values"]) or "defaults",
            scored(one["validation"]),
            str(one["rounds"]),
            scored(one["test"]),
            "chosen" if one["chosen"] else "diverged" if one["failures"] else "",
        )
        for one in tried
    )
    name = f"{metric.column}, %" if metric.percent else metric.column
    header = ("method", "setting", f"validation {name}", "rounds", f"test {name}", "")
    return Extra(f"Settings tried; ± {text.SPREAD}", header, rows)
