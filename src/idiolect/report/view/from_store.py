"""What a report says of the runs of a store."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from idiolect.report.made_with import expected_runs, made_with
from idiolect.report.names import method_names, not_chosen
from idiolect.report.texts import CHOSEN, metric_texts, settings_of, split_text
from idiolect.report.view.columns import missing_seeds
from idiolect.report.view.extras import diagnostics, extras, times_of
from idiolect.report.view.names import isolated
from idiolect.report.view.parts import Course, Entry, Part, Quantity, Run, View
from idiolect.report.view.recorded import (
    aligned,
    census_of,
    distances_of,
    recorded_graphs,
    recorded_predicted,
    recorded_traffic,
)
from idiolect.report.view.sweep import tuned_sweep
from idiolect.study.experiment import Cell, Method
from idiolect.study.outcomes import Curve
from idiolect.study.pairs import pairs_among, reference_of, scores_of
from idiolect.study.ranks import ranks_of
from idiolect.study.resolve import run_id
from idiolect.study.results import Results
from idiolect.study.verdict import VERDICTS, Verdict, sentence

SELECTIONS = {
    "last": "last round",
    "last-10": "mean of the last 10 rounds",
    "best-validation": "round chosen on validation data",
    "best-test": "BEST ROUND ON TEST DATA (as published; optimistic)",
}
NO_CONFUSION = (
    "which labels a model takes for which is recorded when models are saved, for few classes and samples: no client "
    "has a confusion matrix or residuals here."
)
NO_DISTANCES = "there are no files of personal and shared models of one size, so no distances between them."


def view_of(results: Results, command: str = "", *, clients: bool = True) -> View:
    """All that a report says of an experiment's results.

    command: reproduces them. clients: with what is recorded of each client, which only the page shows.
    """
    experiment = results.experiment
    made = [line.partition(": ") for line in made_with(results)]
    verdicts = verdicts_of(results)
    return View(
        title=experiment.title or experiment.name,
        parts=tuple(part_of(results, cell, clients=clients) for cell in experiment.cells),
        name=experiment.name,
        source=experiment.source,
        description=experiment.description.strip(),
        protocol=experiment.protocol,
        command=command,
        across=experiment.across,
        after_test=experiment.after_test,
        made_with=tuple((label, text) if text else ("", label) for label, _, text in made),
        runs=runs_of(results),
        ranks=ranks_of(results),
        missing=_open_runs(results),
        verdicts={verdict: verdicts.count(verdict) for verdict in VERDICTS},
        verdict=verdict_sentence(results),
        published=bool(verdicts),
        reading=(*metric_texts(m for cell in experiment.cells for m in results.metrics(cell)), split_text(results)),
    )


def verdicts_of(results: Results) -> list[Verdict]:
    """The verdict on every published value."""
    return [line.verdict for line in (*results.lines, *results.further) if line.verdict is not None]


def verdict_sentence(results: Results) -> str:
    """How many published values have which verdict, as a sentence; empty if there is no published value."""
    lines = (*results.lines, *results.further)
    differing = [line.published for line in lines if line.verdict == "differs"]
    return sentence(verdicts_of(results), sum(value is not None and bool(value.explained) for value in differing))


def runs_of(results: Results) -> tuple[Run, ...]:
    """Every run of the experiment, also those that were not started."""
    runs: list[Run] = []
    for cell in results.experiment.cells:
        for method in cell.methods:
            for seed in results.experiment.seed_list:
                name = run_id(cell.id, method.title, seed)
                run, row = Run(name, cell.id, method.title, seed), results.rows.get(name)
                if row is not None:
                    parts = {key: getattr(row, key) for key in ("status", "round", "seconds", "compile_seconds")}
                    found = results.store.diagnostics(name)
                    run = replace(run, **parts, message=row.message, diagnostics=found)
                runs.append(run)
    return tuple(runs)


def cell_title(cell: Cell) -> str:
    """The cell's title, or its id."""
    return cell.title or cell.id


def statuses(results: Results, cell: Cell, method: Method) -> Counter[str]:
    """Count a method's seeds by status: done, diverged, unfinished, not run."""
    rows = [results.rows.get(run_id(cell.id, method.title, seed)) for seed in results.experiment.seed_list]
    names = {"running": "unfinished"}
    return Counter("not run" if row is None else names.get(row.status, row.status) for row in rows)


def part_of(results: Results, cell: Cell, *, clients: bool = True, compared: bool = True) -> Part:
    """What a report says of one cell, which may be a cell of the experiment by another of its metrics.

    clients: with what is recorded of each client. compared: with differences between methods, and the small tables.
    """
    known, names = tuple(results.clients(cell)), method_names(results.experiment.cells)
    own = next(one for one in results.experiment.cells if one.id == cell.id)
    lines = [line for line in results.lines if line.cell == cell.id]
    if results.metric(cell) is not results.metric(own):
        lines = [
            results.line(cell, method, model) for method in cell.methods for model in results.names(cell, method)
        ]
    quantities, begun = _quantities(results, cell)
    census = aligned(census_of(results, cell), known) if clients else None
    across, scores = results.experiment.across, scores_of(results, cell)
    part = Part(
        id=cell.id,
        title=cell_title(cell),
        metric=results.metric(cell),
        metrics=results.metrics(cell),
        task=results.task(cell),
        seeds=results.experiment.seed_list,
        rounds=cell.rounds,
        methods=tuple(Entry(method.title, names[method.title], method.name) for method in cell.methods),
        lines=tuple(lines),
        further=tuple(line for line in results.further if line.cell == cell.id),
        clients=known,
        scores=scores,
        quantities=quantities,
        census=census,
        select=cell.select,
        selected=SELECTIONS[cell.select],
        chosen=CHOSEN[cell.select],
        draw=tuple(cell.draw),
        notes=tuple(results.notes(cell)),
        audit=tuple(results.audit(cell)) or None,
        settings=settings_of(cell),
        statuses={method.title: dict(statuses(results, cell, method)) for method in cell.methods},
        graphs=recorded_graphs(results, cell) if clients else (),
        sweep=tuned_sweep(results, cell),
        muted=not_chosen(results, cell),
        times=times_of(results, cell),
        at=cell.value(across) if across else float("nan"),
    )
    if compared:
        pairs = pairs_among(scores, reference_of(results, cell), part.metric, known)
        reported = diagnostics(results, cell)
        small = (*extras(results, cell, pairs), *([reported] if reported else []))
        part = replace(part, pairs={(pair.method, pair.model): pair for pair in pairs}, extras=small)
    return _with_recorded(results, cell, part, begun) if compared and clients else part


def _with_recorded(results: Results, cell: Cell, part: Part, begun: Sequence[str]) -> Part:
    """The part with bytes, predictions and distances, and with a sentence on each thing that is missing."""
    name, census = isolated(part.title), part.census
    missing, traffic = [*begun], recorded_traffic(results, cell)
    predicted, whose = recorded_predicted(results, cell)
    distances = distances_of(results, cell, part.shared)
    if not part.clients:
        missing.append(f"{name}: no run has ended yet, so no scores are shown.")
    elif census is None or not census.counts + census.quantiles:
        missing.append(
            f"{name}: what labels each client holds was not recorded with these runs, or means something "
            "else at each client, so that no map of labels is shown."
        )
    if part.clients and not traffic:
        missing.append(f"{name}: the bytes that travel were not recorded with these runs.")
    if part.clients and not predicted:
        missing.append(f"{name}: {NO_CONFUSION}")
    planned = len(part.seeds)
    for title, counts in part.statuses.items():
        if seeds := missing_seeds(counts):
            missing.append(f"{name}, {isolated(title)}: {', '.join(seeds)} of {planned} seeds.")
    if part.clients and distances is None:
        missing.append(f"{name}: {NO_DISTANCES}")
    classes = part.task == "classification"
    return replace(
        part,
        traffic=traffic,
        distances=distances,
        confusion=predicted if predicted and classes else None,
        residuals=predicted if predicted and not classes else None,
        confusion_note=whose,
        missing=tuple(missing),
    )


def _quantities(results: Results, cell: Cell) -> tuple[tuple[Quantity, ...], list[str]]:
    """The courses of test score and losses over rounds; and a sentence for methods of which no run has ended."""
    metric = results.metric(cell)
    by_split = {split: results.curves(cell, split, unfinished=True) for split in ("test", "validation", "train")}
    ended = {method.title for method in cell.methods if results.finished(cell, method)}
    quantities = [
        _quantity("score", f"test {metric.column}", metric.percent, by_split["test"], ended),
        _quantity("validation", f"validation {metric.column}", metric.percent, by_split["validation"], ended),
        _quantity("loss", "training loss", False, by_split["train"], ended),
        _quantity("test loss", "test loss", False, by_split["test"], ended),
    ]
    begun = dict.fromkeys(curve.method for curve in by_split["test"] if curve.method not in ended)
    name, those = isolated(cell_title(cell)), ", ".join(map(isolated, begun))
    told = f"{name}: no run of {those} has ended; curves show the rounds that are done."
    return tuple(each for each in quantities if each.courses), [told] if begun else []


def _quantity(kind: str, title: str, percent: bool, curves: Sequence[Curve], ended: Collection[str]) -> Quantity:
    loss = "loss" in kind
    courses = [
        Course(
            (curve.method, curve.model),
            curve.rounds,
            curve.loss if loss else curve.score,
            curve.loss_ci95 if loss else curve.score_ci95,
            curve.method in ended,
        )
        for curve in curves
    ]
    return Quantity(kind, title, percent, tuple(c for c in courses if np.isfinite(c.mean).any()))


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
