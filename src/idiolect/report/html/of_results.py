"""What a page shows of the runs of a store."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from idiolect.report.comparison import cell_title, statuses
from idiolect.report.extras import diagnostics, extras
from idiolect.report.html.distances import distances_of
from idiolect.report.html.names import isolated
from idiolect.report.html.parts import Course, Entry, Part, Quantity, Whole
from idiolect.report.html.recorded import census_of, recorded_graphs, recorded_predicted, recorded_traffic
from idiolect.report.html.sweeps import tuned_sweep
from idiolect.report.made_with import expected_runs, made_with
from idiolect.report.names import method_names, not_chosen
from idiolect.report.texts import CHOSEN, metric_texts, settings_of, split_text
from idiolect.report.times import is_timed
from idiolect.report.verdicts import verdict_sentence, verdicts_of
from idiolect.study.analyse.outcomes import Curve
from idiolect.study.analyse.pairs import pairs_among, reference_of, scores_of
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell

NO_CONFUSION = (
    "which labels a model takes for which is recorded when models are saved, for few classes and samples: no client "
    "has a confusion matrix or residuals here."
)
NO_DISTANCES = "there are no files of personal and shared models of one size, so no distances between them."


def whole_of(results: Results, command: str) -> Whole:
    """The whole of an experiment's results. command: reproduces them."""
    experiment = results.experiment
    made = [line.partition(": ") for line in made_with(results)]
    return Whole(
        title=experiment.title or experiment.name,
        parts=tuple(part_of(results, cell) for cell in experiment.cells),
        source=experiment.source,
        description=" ".join(experiment.description.split()),
        protocol=experiment.protocol,
        command=command,
        after_test=experiment.after_test,
        made_with=tuple((label, text) if text else ("", label) for label, _, text in made),
        missing=_open_runs(results),
        verdicts=verdict_sentence(results),
        published=bool(verdicts_of(results)),
        reading=(*metric_texts(m for cell in experiment.cells for m in results.metrics(cell)), split_text(results)),
    )


def part_of(results: Results, cell: Cell) -> Part:
    """What a page shows of one cell."""
    name = isolated(cell_title(cell))
    names, census = method_names(results.experiment.cells), census_of(results, cell)
    quantities, begun = _quantities(results, cell)
    reported, scores = diagnostics(results, cell), scores_of(results, cell)
    pairs = pairs_among(scores, reference_of(results, cell), results.metric(cell), results.clients(cell))
    missing = [*begun]
    if not results.clients(cell):
        missing.append(f"{name}: no run has ended yet, so no scores are shown.")
    elif census is None or not census.counts + census.quantiles:
        missing.append(
            f"{name}: what labels each client holds was not recorded with these runs, or means something "
            "else at each client, so that no map of labels is shown."
        )
    traffic = recorded_traffic(results, cell)
    if results.clients(cell) and not traffic:
        missing.append(f"{name}: the bytes that travel were not recorded with these runs.")
    predicted, whose = recorded_predicted(results, cell)
    if results.clients(cell) and not predicted:
        missing.append(f"{name}: {NO_CONFUSION}")
    classes = results.task(cell) == "classification"
    part = Part(
        id=cell.id,
        title=cell_title(cell),
        metric=results.metric(cell),
        task=results.task(cell),
        seeds=results.experiment.seed_list,
        methods=tuple(Entry(method.title, names[method.title], method.name) for method in cell.methods),
        lines=tuple(line for line in results.lines if line.cell == cell.id),
        clients=tuple(results.clients(cell)),
        scores=scores,
        pairs={(pair.method, pair.model): pair for pair in pairs},
        quantities=quantities,
        census=census,
        chosen=CHOSEN[cell.select],
        notes=tuple(results.notes(cell)),
        audit=tuple(results.audit(cell)) or None,
        settings=settings_of(cell),
        extras=(*extras(results, cell, pairs), *([reported] if reported else [])),
        traffic=traffic,
        graphs=recorded_graphs(results, cell),
        sweep=tuned_sweep(results, cell),
        confusion=predicted if predicted and classes else None,
        residuals=predicted if predicted and not classes else None,
        confusion_note=whose,
        muted=not_chosen(results, cell),
        timed=is_timed(cell),
        missing=(*missing, *_seeds_missing(results, cell)),
    )
    distances = distances_of(results, cell, part.shared)
    if part.clients and distances is None:
        part = replace(part, missing=(*part.missing, f"{name}: {NO_DISTANCES}"))
    return replace(part, distances=distances)


def _quantities(results: Results, cell: Cell) -> tuple[tuple[Quantity, ...], list[str]]:
    """The courses of test score and losses over rounds; and a sentence for methods of which no run has ended."""
    metric = results.metric(cell)
    by_split = {split: results.curves(cell, split, unfinished=True) for split in ("test", "validation", "train")}
    quantities = [
        _quantity(f"test {metric.column}", metric.percent, by_split["test"]),
        _quantity(f"validation {metric.column}", metric.percent, by_split["validation"]),
        _quantity("training loss", False, by_split["train"], loss=True),
        _quantity("test loss", False, by_split["test"], loss=True),
    ]
    begun = dict.fromkeys(
        curve.method for curve in by_split["test"] if not results.finished(cell, cell.method(curve.method))
    )
    name, those = isolated(cell_title(cell)), ", ".join(map(isolated, begun))
    told = f"{name}: no run of {those} has ended; curves show the rounds that are done."
    return tuple(each for each in quantities if each.courses), [told] if begun else []


def _quantity(title: str, percent: bool, curves: Sequence[Curve], *, loss: bool = False) -> Quantity:
    courses = [
        Course(
            (curve.method, curve.model),
            curve.rounds,
            curve.loss if loss else curve.score,
            curve.loss_ci95 if loss else curve.score_ci95,
        )
        for curve in curves
    ]
    return Quantity(title, percent, tuple(c for c in courses if np.isfinite(c.mean).any()))


def _open_runs(results: Results) -> tuple[str, ...]:
    """A sentence on each run that diverged or is not finished, and one if nothing was run."""
    rows = expected_runs(results)
    if not rows:
        return ("Nothing was run yet: there are no scores to show.",)
    return tuple(
        f"{isolated(row.id)} diverged: {row.message}"
        if row.status == "diverged"
        else f"{isolated(row.id)} is not finished: {row.round} rounds are done."
        for row in rows
        if row.status in ("diverged", "running")
    )


def _seeds_missing(results: Results, cell: Cell) -> list[str]:
    """A sentence for each method that has fewer seeds than planned."""
    name, lines = isolated(cell_title(cell)), list[str]()
    for method in cell.methods:
        counts = statuses(results, cell, method)
        missing = [f"{counts[s]} {s}" for s in ("diverged", "unfinished", "not run") if counts[s]]
        if missing:
            planned = results.experiment.seeds
            lines.append(f"{name}, {isolated(method.title)}: {', '.join(missing)} of {planned} seeds.")
    return lines
