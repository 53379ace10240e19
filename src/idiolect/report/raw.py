"""The numbers behind a table as CSV: unrounded, with an empty field for a missing number."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from idiolect.core.files import write_text
from idiolect.metrics.registry import METRICS
from idiolect.study.analyse.outcomes import Line
from idiolect.study.analyse.results import Results
from idiolect.study.store.summary import OverSeeds

OVER_SEEDS = (
    *("pooled", "mean", "spread", "worst10", "worst", "loss"),
    *("hurt_local", "hurt_global", "seconds"),
)
LINE_COLUMNS = ("cell", "method", "model", "metric", "seeds", "failed", "rounds")
PUBLISHED_COLUMNS = (
    *("published_metric", "published", "published_std", "published_half_width", "within"),
    *("difference", "difference_low", "difference_high"),
    *("verdict", "other_data", "explained"),
)
CLIENT_COLUMNS = ("cell", "method", "model", "seed", "round", "client", "n")
DIAGNOSTIC_COLUMNS = ("cell", "method", "seed", "diagnostic", "round", "value")


def write_csv(results: Results, path: str | Path) -> None:
    """Write one row for each cell, method and named model, with every number of its line.

    A model with several published values has a row for each, the first ones in order, the others at the end.

    pooled, mean, spread, worst10 and worst are values of the compared metric, named by `metric`. Every measured
    metric has a column of its value over all samples. Scores that tables show in per cent are fractions here. NAME is
    the mean over seeds, NAME_std the sample standard deviation, NAME_ci95 the half-width of the 95 % confidence
    interval. published, published_std, published_half_width, within, difference and the ends of its 95 % interval are
    in the units of published_metric (per cent for accuracy). rounds: the rounds shown, one a seed.
    """
    names = list(dict.fromkeys(name for line in results.lines for name in line.metrics))
    numbers = (*OVER_SEEDS, *(METRICS[name].key for name in names))
    columns = [*LINE_COLUMNS, *(name + suffix for name in numbers for suffix in ("", "_std", "_ci95"))]
    _write(path, [*columns, *PUBLISHED_COLUMNS], (_line(line, names) for line in (*results.lines, *results.further)))


def _line(line: Line, names: Sequence[str]) -> list[object]:
    row: list[object] = [line.cell, line.method, line.model, line.metric, line.pooled.seeds]
    row += [line.failed, " ".join(str(r) for r in line.rounds)]
    values: list[OverSeeds | None] = [getattr(line, name) for name in OVER_SEEDS]
    for value in (*values, *(line.metrics.get(name) for name in names)):
        row += [None] * 3 if value is None else [value.mean, value.std, value.half_width]
    published = line.published
    if published is None:
        return [*row, *[None] * len(PUBLISHED_COLUMNS)]
    ends = (None, None) if line.interval is None else (line.interval.low, line.interval.high)
    row += [line.published_metric, published.value, published.std, published.half_width, published.within]
    row += [line.difference, *ends]
    return [*row, line.verdict, published.other_data, published.explained]


def clients_csv(results: Results, path: str | Path) -> None:
    """Write one row for each cell, method, named model, seed and client: its test scores at the selected round."""
    names = list(dict.fromkeys(m.name for cell in results.experiment.cells for m in results.metrics(cell)))
    columns = [*CLIENT_COLUMNS, *(METRICS[name].key for name in names), "loss"]
    _write(path, columns, _clients(results, names))


def _clients(results: Results, metrics: Sequence[str]) -> Iterable[Sequence[object]]:
    for cell in results.experiment.cells:
        names = results.clients(cell)
        for method in cell.methods:
            for model in results.names(cell, method):
                for row in results.finished(cell, method):
                    selected = results.selected(cell, row, model)
                    if selected is None:
                        continue
                    selected_round, scores = selected
                    missing = np.full(len(scores.count), np.nan)
                    values = [scores.values.get(name, missing) for name in metrics]
                    for i, (n, *numbers) in enumerate(zip(scores.count, *values, scores.loss, strict=True)):
                        client = names[i] if i < len(names) else str(i)
                        shown = (int(n), *(float(number) for number in numbers))
                        yield (cell.id, method.title, model, row.seed, selected_round, client, *shown)


def diagnostics_csv(results: Results, path: str | Path) -> None:
    """Write one row for each run, diagnostic and evaluated round."""
    rows = (
        (row.cell, row.label, row.seed, name, *point)
        for row in results.started()
        for name, course in results.store.diagnostics(row.id).items()
        for point in course
    )
    _write(path, DIAGNOSTIC_COLUMNS, rows)


def _write(path: str | Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if isinstance(v, float) and math.isnan(v) else v for v in row])
    write_text(path, buffer.getvalue(), shared=True)
