"""What a report says of the runs of a store: its parts, its texts on settings, and what made it."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from inspect import cleandoc
from pathlib import Path
from typing import Any

import numpy as np

from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.metrics.base import Metric
from idiolect.report.sections.registry import sections_of
from idiolect.report.sections.tables import times_of
from idiolect.report.text import isolated
from idiolect.report.view.columns import missing_seeds
from idiolect.report.view.parts import Course, Entry, Part, Quantity, Run, View
from idiolect.report.view.recorded import (
    aligned,
    census_of,
    distances_of,
    method_names,
    not_chosen,
    recorded_graphs,
    recorded_predicted,
    recorded_traffic,
)
from idiolect.report.view.tried import tuned_sweep
from idiolect.study.analyse.outcomes import VERDICTS, Curve, Verdict, sentence
from idiolect.study.analyse.pairs import pairs_of, scores_of
from idiolect.study.analyse.ranks import ranks_of
from idiolect.study.analyse.results import Results
from idiolect.study.run.launch import stored_options
from idiolect.study.run.rounds import FALL, PATIENCE, settled
from idiolect.study.spec.experiment import Cell, Method, run_id
from idiolect.study.store.store import RunRow


def expected_runs(results: Results) -> list[RunRow]:
    """The experiment's runs that are in the store, in the store's order."""
    groups = {(c.id, m.title) for c in results.experiment.cells for m in c.methods}
    seeds = results.experiment.seed_list
    return [row for row in results.rows.values() if (row.cell, row.label) in groups and row.seed in seeds]


def made_with(results: Results) -> list[str]:
    """List date, git commit, versions and machine; where runs differ, all values."""
    provenances = [row.provenance for row in expected_runs(results)]
    if not provenances:
        return ["nothing was run yet"]
    days = sorted({str(p.get("time", ""))[:10] for p in provenances} - {""})
    packages = sorted({name for p in provenances for name in p.get("packages", {})}, key=_order)
    lines = [
        _named("date", [days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"] if days else []),
        _named("git commit", _each(provenances, _commit)),
        _named("Python", _each(provenances, lambda p: p.get("python"))),
        *(_named(name, _each(provenances, lambda p, n=name: p.get("packages", {}).get(n))) for name in packages),
        _named("machine", _each(provenances, _machine)),
        "" if keeps_models(results) else f"model files: {NO_MODELS}",
    ]
    return [line for line in lines if line]


def keeps_models(results: Results) -> bool:
    """Whether model files were wanted: without them nothing that they would show is missing."""
    return bool(stored_options(results.store)["save_models"] != "none")


def _each(provenances: Sequence[dict[str, Any]], value: Any) -> list[str]:
    """The distinct values of all runs, in order of appearance."""
    return list(dict.fromkeys(str(v) for p in provenances if (v := value(p))))


def _named(name: str, values: Sequence[str]) -> str:
    return f"{name}: {', '.join(values)}" if values else ""


def _order(package: str) -> tuple[bool, str]:
    return package != "idiolect", package


def _commit(provenance: dict[str, Any]) -> str | None:
    git = provenance.get("git")
    if not git:
        return None
    return str(git["commit"])[:12] + (" with uncommitted changes" if git.get("dirty") else "")


def _machine(provenance: dict[str, Any]) -> str:
    """Processor, cores, memory and device, as far as the run recorded them."""
    machine, cpu, cores, memory, device = map(provenance.get, ("machine", "cpu", "cores", "memory_gb", "device"))
    parts = [machine, cpu if cpu != machine else None, cores and f"{cores} cores", memory and f"{memory} GB memory"]
    parts.append(device and f"device {device}")
    return ", ".join(str(part) for part in parts if part)


CHOSEN = {
    "last": "The models of the last round are shown.",
    "last-10": "Each client's mean over the last ten rounds is shown.",
    "best-validation": "For each run and named model the round with the best score on VALIDATION data is shown.",
    "best-test": "For each run and named model the BEST ROUND ON TEST DATA is shown, as in the published code. "
    "These numbers are optimistic: the test data chose them.",
}
COLUMNS = """\
- The first column of numbers, **accuracy** or **mse** unless another metric was chosen: over all test samples of all
  clients, mean over seeds. Methods are compared by it. **client mean**: every client counts once. **worst 10 %**: the
  mean of the worst tenth of the clients. Other metrics are over all test samples, too; a published value after a
  metric's name is compared with that metric.
- **±** is {spread}; a single seed has no ±. `table.csv` also has the standard
  deviation over seeds. What follows ± in a published value is what the paper gives.
{metrics}
- **hurt vs Local**: the share of clients that are worse off than with local training on only their own data.
  **hurt vs FedAvg**: the share worse off than with the plain global model, FedAvg's; **hurt vs own global** where
  FedAvg was not run: than with the method's own.
- **seconds**: training time of one run, without compilation.
- Bold: the best score in its table.
- "Against ..." (two seeds or more): the difference over all test samples, mean over the same seeds, with Student's
  95 % interval; **p** is corrected by Holm's method for the table. The deviation over seeds counts as at least one
  test sample, because a few seeds can have equal differences by chance. **better**, **worse**: clients beyond the
  noise of their test samples and of the seeds, Holm over all clients and models of the table. {split}
"""
ONE_SPLIT = "Every seed has the same split: this is the uncertainty\n  of training, not of the split."
NEW_SPLITS = "Each seed draws its own split, too."


def metric_texts(metrics: Iterable[Metric]) -> list[str]:
    """What each metric is, a sentence each, none twice."""
    return [cleandoc(metric.__doc__ or "").splitlines()[0] for metric in dict.fromkeys(metrics)]


def split_text(results: Results) -> str:
    """Whether the spread over seeds is also that of the split."""
    return NEW_SPLITS if any(cell.new_splits for cell in results.experiment.cells) else ONE_SPLIT


def settings_of(cell: Cell) -> tuple[tuple[str, str], ...]:
    """A cell's settings as (label, text) pairs: its data, model and rounds, and each method's hyper-parameters."""
    cohort = "all clients" if cell.cohort is None else f"{cell.cohort:g} clients"
    sampling = "" if cell.sampling == "fixed" else f" ({cell.sampling} sampling, on average)"
    evaluated = "" if cell.eval_clients is None else f", on {cell.eval_clients:,} clients drawn once for all methods"
    return (
        ("data", _settings(cell.data)),
        ("model", _settings(cell.model)),
        (
            "",
            f"{_rounds(cell)}{evaluated}; {cohort} a round{sampling}"
            if cell.stop == "settled"
            else f"{cell.rounds} rounds, {cohort} a round{sampling}, "
            f"evaluated every {cell.eval_every} rounds{evaluated}",
        ),
        *(_method(method) for method in cell.methods),
    )


def _rounds(cell: Cell) -> str:
    """The budget of rounds and the rule by which a method stops before."""
    return (
        f"at most {cell.rounds} rounds for every method, which ends when its validation loss has fallen by less than "
        f"{FALL:.1%} over {PATIENCE} evaluations; evaluated after rounds 1, 2, 3, 4, 6, 9, 14, ..."
    )


def _falling(results: Results, cell: Cell) -> frozenset[tuple[str, str]] | None:
    """The models with a validation loss that still fell at the last round, in any seed; None without early stop."""
    if cell.stop != "settled":
        return None
    rows = [(method.title, row) for method in cell.methods for row in results.finished(cell, method)]
    return frozenset(
        (title, model)
        for title, row in rows
        for model, losses in results.store.losses(row.id, "validation").items()
        if row.round >= cell.rounds and not settled(losses)
    )


def _hints(results: Results, cell: Cell) -> list[str]:
    """What to do where a method's validation loss still fell at the last round."""
    methods = dict.fromkeys(title for title, _ in sorted(_falling(results, cell) or ()))
    if not methods:
        return []
    return [
        f"the validation loss of {', '.join(methods)} still fell after {cell.rounds} rounds, so that it has not "
        f"converged: train longer with --rounds {5 * cell.rounds}, or set a higher rate"
    ]


def _method(method: Method) -> tuple[str, str]:
    label = method.title if method.title != method.name else ""
    return label, _settings({**hyperparameters(ALGORITHMS[method.name]), **method.spec})


def _settings(spec: dict[str, Any]) -> str:
    """Format a specification: its name, then its values; paths are cut to their last part."""
    pairs = ", ".join(f"{key} = {_public(value)}" for key, value in spec.items() if key not in ("name", "folder"))
    name = str(spec.get("name", ""))
    return f"{name} ({pairs})" if name and pairs else name or pairs


def _public(value: Any) -> Any:
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


SELECTIONS = {
    "last": "last round",
    "last-10": "mean of the last 10 rounds",
    "best-validation": "round chosen on validation data",
    "best-test": "BEST ROUND ON TEST DATA (as published; optimistic)",
}
NO_MODELS = "none are kept, so there are no confusion matrices and no distances between models"
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
        falling=_falling(results, cell),
        draw=tuple(cell.draw),
        notes=(*results.notes(cell), *_hints(results, cell)),
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
        pairs = pairs_of(results, cell, scores)
        by_model = {(pair.method, pair.model): pair for pair in pairs}
        part = replace(part, pairs=by_model, extras=sections_of(results, cell, pairs))
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
    kept = part.clients and keeps_models(results)
    if kept and not predicted:
        missing.append(f"{name}: {NO_CONFUSION}")
    planned = len(part.seeds)
    for title, counts in part.statuses.items():
        if seeds := missing_seeds(counts):
            missing.append(f"{name}, {isolated(title)}: {', '.join(seeds)} of {planned} seeds.")
    if kept and distances is None:
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
