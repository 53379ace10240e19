"""The tables next to a cell's main one, in this order: differences, new clients, published gaps and times, settings.

Each is a function that `named` marks: a section of the report (`registry.py`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from idiolect.core.plugins import named
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import METRICS
from idiolect.report import text
from idiolect.report.view.parts import Extra, Times
from idiolect.study.analyse.outcomes import in_words
from idiolect.study.analyse.pairs import Pair, reference_of
from idiolect.study.analyse.results import Results, chosen
from idiolect.study.run.newcomers import new_lines, refusals
from idiolect.study.search.space import shown
from idiolect.study.spec.experiment import Cell
from idiolect.study.spec.published import published_metric
from idiolect.study.store.summary import OverSeeds

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


@named("pairs")
def paired(results: Results, cell: Cell, pairs: Sequence[Pair]) -> Extra | None:
    """Differences from one model, paired by seed; None with one seed, settings to choose among, or times."""
    seeds = results.experiment.seeds
    if seeds < 2 or cell.tune or is_timed(cell):
        return None
    return pairs_extra(pairs, reference_of(results, cell), results.metric(cell), seeds)


@named("newcomers")
def newcomers(results: Results, cell: Cell, pairs: Sequence[Pair]) -> Extra | None:
    """Known clients against the held-out ones, whom each method served as new clients; None without any."""
    del pairs
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
    over = _over(results)
    title = f"New clients, held out of training: test {metric.column}, mean of the clients{over}"
    return Extra(title, ("method", "model", "known", "new", "new minus known"), tuple(rows)) if rows else None


@named("gaps")
def gaps(results: Results, cell: Cell, pairs: Sequence[Pair]) -> Extra | None:
    """Published differences between methods; None where the experiment has none."""
    del pairs
    rows = tuple(
        (
            f"{line.gap.larger} minus {line.gap.smaller}",
            text.compared(line.measured, METRICS["accuracy"]),
            f"{line.gap.value:.1f}",
            text.difference(line.difference, line.interval, METRICS["accuracy"]),
            in_words(line.verdict, line.published),
        )
        for line in (results.gaps(cell) if cell.gaps else ())
    )
    header = ("gap", "measured", "published", "difference", "verdict")
    return Extra(f"Published gaps, in points{_over(results)}", header, rows) if cell.gaps else None


@named("published")
def published(results: Results, cell: Cell, pairs: Sequence[Pair]) -> Extra | None:
    """The models' second, third, ... published values; None without any."""
    del pairs
    rows: list[tuple[str, ...]] = []
    lines = [line for line in results.further if line.cell == cell.id]
    for line in lines:
        value, metric = line.published, published_metric(line.published_metric)
        if value is not None and line.verdict is not None:
            measured = "not measured" if line.compared is None else text.compared(line.compared, metric)
            numbers = measured, text.published(value, metric, metric)
            difference = text.difference(line.difference, line.interval, metric)
            rows.append((line.method, line.model, metric.column, *numbers, difference, in_words(line.verdict, value)))
    header = ("method", "model", "metric", "measured", "published", "difference", "verdict")
    return Extra(f"Other published values{_over(results)}", header, tuple(rows)) if lines else None


@named("times")
def times(results: Results, cell: Cell, pairs: Sequence[Pair]) -> Extra | None:
    """Seconds per round, also as multiples of the paper's fastest method; None without published ones."""
    del pairs
    found = times_of(results, cell)
    if found is None:
        return None

    def column(values: Mapping[str, float], form: Callable[[float], str]) -> list[str]:
        return [form(values[m.title]) if m.title in values else text.MISSING for m in cell.methods]

    rows = zip(
        [method.title for method in cell.methods],
        column(found.measured, text.value),
        column(found.multiples(found.measured), "{:.2f}".format),
        column(found.published, "{:g}".format),
        column(found.multiples(found.published), "{:.2f}".format),
        strict=True,
    )
    header = ("method", "measured", f"times {found.base}", "published", f"times {found.base}, published")
    title = "Seconds per round, without compiling; on another machine only the ratios compare"
    return Extra(title, header, tuple(rows))


@named("tuned")
def tuned(results: Results, cell: Cell, pairs: Sequence[Pair]) -> Extra | None:
    """The setting of each method that validation data chose; None where nothing is tuned."""
    del pairs
    if not cell.tune:
        return None
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
    return Extra(f"Settings chosen on validation data{_over(results)}", header, rows)


@named("diagnostics")
def diagnostics(results: Results, cell: Cell, pairs: Sequence[Pair]) -> Extra | None:
    """Build the table of each run's last diagnostics; None if no method of the cell has any."""
    del pairs
    rows = tuple(
        (row.label, str(row.seed), name, str(course[-1][0]), text.value(course[-1][1]))
        for row in results.started()
        if row.cell == cell.id
        for name, course in results.store.diagnostics(row.id).items()
    )
    header = ("method", "seed", "diagnostic", "round", "value")
    return Extra("Diagnostics, when last evaluated", header, rows) if rows else None


def _over(results: Results) -> str:
    """What follows ± in a table's measured numbers; empty for one seed, which has no ±."""
    return f"; ± {text.WIDTH} over seeds" if results.experiment.seeds > 1 else ""


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
