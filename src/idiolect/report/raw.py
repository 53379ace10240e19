"""The raw numbers behind a table, as CSV: nothing rounded, an empty field where there is no number."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from idiolect.core.files import atomic_write
from idiolect.study.outcomes import Line
from idiolect.study.results import Results
from idiolect.study.summary import OverSeeds, metric_name

OVER_SEEDS = (
    *("weighted", "mean", "spread", "worst10", "worst", "loss", "macro_f1"),
    *("hurt_local", "hurt_global", "seconds"),
)
LINE_COLUMNS = (
    *("cell", "method", "model", "metric", "seeds", "failed", "rounds"),
    *(name + suffix for name in OVER_SEEDS for suffix in ("", "_std", "_ci95")),
    *("published_metric", "published", "published_std", "within", "difference", "verdict"),
)
CLIENT_COLUMNS = ("cell", "method", "model", "seed", "round", "client", "n", "score", "loss")
DIAGNOSTIC_COLUMNS = ("cell", "method", "seed", "diagnostic", "round", "value")


def write_csv(results: Results, path: str | Path) -> None:
    """Write one row for each cell, method and named model, with every number of its line.

    Scores are fractions (accuracy) or mse; NAME is the mean over seeds, NAME_std the sample standard deviation,
    NAME_ci95 the half width of the 95 % confidence interval. published, published_std, within and difference are
    in per cent for accuracy and macro-F1, of which published_metric is one, or mse. rounds: the rounds shown, one a
    seed.
    """
    _write(path, LINE_COLUMNS, (_line(line) for line in results.lines))


def _line(line: Line) -> list[object]:
    row: list[object] = [line.cell, line.method, line.model, metric_name(line.task), line.weighted.seeds]
    row += [line.failed, " ".join(str(r) for r in line.rounds)]
    for name in OVER_SEEDS:
        value: OverSeeds | None = getattr(line, name)
        row += [None] * 3 if value is None else [value.mean, value.std, value.half_width]
    known = line.published
    if known is None:
        row += [None] * 4
    else:
        metric = metric_name(line.task) if known.metric == "score" else known.metric
        row += [metric, known.value, known.std, known.within]
    return [*row, line.difference, line.verdict]


def clients_csv(results: Results, path: str | Path) -> None:
    """Write one row for each cell, method, named model, seed and client: its test scores at the selected round."""
    _write(path, CLIENT_COLUMNS, _clients(results))


def _clients(results: Results) -> Iterable[Sequence[object]]:
    for cell in results.experiment.cells:
        names = results.clients(cell)
        for method in cell.methods:
            for model in results.names(cell, method):
                for row in results.finished(cell, method):
                    found = results.selected(cell, row, model)
                    if found is None:
                        continue
                    chosen, scores = found
                    for i, (n, score, loss) in enumerate(zip(scores.count, scores.score, scores.loss, strict=True)):
                        client = names[i] if i < len(names) else str(i)
                        values = (int(n), float(score), float(loss))
                        yield (cell.id, method.title, model, row.seed, chosen, client, *values)


def has_diagnostics(results: Results) -> bool:
    """Whether any run has a diagnostic."""
    return any(results.store.diagnostics(row.id) for row in results.started())


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
    with atomic_write(path) as file:
        file.write(buffer.getvalue().encode())
