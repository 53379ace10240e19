"""Results: the runs of a store, summarised over seeds for each method and model; settings chosen by validation."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.data.federated import INCOMPLETE, TaskKind
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import ALWAYS, METRICS
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.analyse.outcomes import FEDAVG, OWN, Curve, GapLine, Line
from idiolect.study.spec.experiment import Cell, Experiment, Method, metrics_of, run_id
from idiolect.study.spec.published import Published
from idiolect.study.store.store import RunRow, Store
from idiolect.study.store.summary import OverSeeds, Summary, half_widths, hurt_fraction, over_seeds, summarise


def mean_scores(rounds: Sequence[ClientScores]) -> ClientScores:
    """Average scores over several rounds: each client's loss and metrics, and the values over all samples."""
    last = rounds[-1]
    return replace(
        last,
        loss=np.mean([scores.loss for scores in rounds], axis=0),
        values={name: np.mean([scores.values[name] for scores in rounds], axis=0) for name in last.values},
        pooled={name: float(np.mean([scores.pooled[name] for scores in rounds])) for name in last.pooled},
    )


Points = list[tuple[int, float, float]]


def _common(runs: list[Points]) -> list[Points]:
    """The courses in the rounds that all of them have; nothing if there is no such round."""
    rounds = set.intersection(*({point[0] for point in run} for run in runs)) if runs else set[int]()
    return [[point for point in run if point[0] in rounds] for run in runs] if rounds else []


_NUMBER = re.compile(r"(?<![\w'.])\d[\d,]*(?:\.\d+)?(?!\w)")


def worst_of(audits: Sequence[Sequence[str]]) -> list[str]:
    """The findings of several divisions of the same rows, in order; of those that differ only in numbers the largest.

    Names in quotes are no numbers.
    """
    found: dict[str, list[str]] = {}
    for line in dict.fromkeys(line for audit in audits for line in audit):
        found.setdefault(_NUMBER.sub("#", line), []).append(line)

    def numbers(line: str) -> list[float]:
        return [float(number.replace(",", "")) for number in _NUMBER.findall(line)]

    return [
        lines[0] if len(lines) == 1 else f"{max(lines, key=numbers)} (The most of {len(audits)} divisions.)"
        for lines in found.values()
    ]


class Results:
    """The results of an experiment, read from a store."""

    def __init__(self, store: Store, experiment: Experiment) -> None:
        self.store, self.experiment = store, experiment
        self.rows = {row.id: row for row in store.runs()}
        self._best: dict[str, dict[str, Best]] = {}

    def best(self, cell: Cell) -> dict[str, "Best"]:
        """Of a tuned cell: each method's best setting, by name; nothing of other cells.

        All settings of the experiment's cell are compared, even if `cell` has only those that are drawn.
        """
        if not cell.tune:
            return {}
        if cell.id not in self._best:
            self._best[cell.id] = best_settings(self, self.experiment.cell(cell.id))
        return self._best[cell.id]

    def standing(self, cell: Cell, *names: str) -> list[Method]:
        """The methods of these names that others are compared with: of a tuned one only the chosen setting."""
        best = self.best(cell)
        named = (method for method in cell.methods if method.name in names)
        return [m for m in named if m.name not in best or best[m.name].title == m.title]

    def finished(self, cell: Cell, method: Method) -> list[RunRow]:
        """The runs of one method in one cell that reached their last round."""
        return [row for row in self._begun(cell, method) if row.status == "done"]

    def _begun(self, cell: Cell, method: Method) -> list[RunRow]:
        """The runs of one method in one cell that are in the store, of any status."""
        rows = (self.rows.get(run_id(cell.id, method.title, seed)) for seed in self.experiment.seed_list)
        return [row for row in rows if row is not None]

    def diverged(self) -> list[RunRow]:
        """The experiment's runs that diverged (NaN or infinity)."""
        return [row for row in self.started() if row.status == "diverged"]

    def unfinished(self) -> list[RunRow]:
        """The experiment's runs that have started but not ended."""
        return [row for row in self.started() if row.status == "running"]

    def started(self) -> list[RunRow]:
        """The experiment's runs that are in the store, of any status."""
        cells, seeds = self.experiment.cells, self.experiment.seed_list
        names = [run_id(cell.id, method.title, seed) for cell in cells for method in cell.methods for seed in seeds]
        return [self.rows[name] for name in names if name in self.rows]

    def task(self, cell: Cell) -> TaskKind:
        """The cell's task, as a finished run recorded it; classification if none is finished."""
        for method in cell.methods:
            for row in self.finished(cell, method):
                task = row.provenance.get("task")
                return "regression" if task == "regression" else "classification"
        return "classification"

    def metrics(self, cell: Cell) -> tuple[Metric, ...]:
        """The metrics measured in a cell."""
        return metrics_of(cell, self.task(cell))

    def metric(self, cell: Cell) -> Metric:
        """The metric by which a cell's models are compared."""
        return self.metrics(cell)[0]

    def notes(self, cell: Cell) -> list[str]:
        """What a reader of the cell's numbers needs to know: its own note, then those on its data."""
        rows = [row for method in cell.methods for row in self.finished(cell, method)]
        noted = [note for row in rows for note in row.provenance.get("notes", [])]
        return list(dict.fromkeys([*([cell.note] if cell.note else []), *noted]))

    def audit(self, cell: Cell) -> list[str]:
        """The findings of the leakage audit of the cell's data, as sentences; of several divisions the worst."""
        rows = [row for method in cell.methods for row in self.finished(cell, method)]
        hashes = dict.fromkeys(row.data_hash for row in rows)
        return worst_of([self.store.fact(f"audit {h}") or [] for h in hashes])

    def clients(self, cell: Cell) -> list[str]:
        """The names of the evaluated clients; empty if no run is finished."""
        for method in cell.methods:
            for row in self.finished(cell, method):
                return list(row.provenance.get("clients", []))
        return []

    def selected(self, cell: Cell, row: RunRow, model: str) -> tuple[int, ClientScores] | None:
        """(selected round, its test scores) of one model of one run; None if it was not evaluated.

        With "last-10": the last round, and every client's mean scores over the last ten rounds.
        """
        split, metric = "validation" if cell.select == "best-validation" else "test", self.metric(cell)
        curve = self.store.curve(row.id, model, split, metric.name)
        if not curve:
            return None
        if cell.select in ("last", "last-10"):
            selected_round = curve[-1][0]
        else:
            selected_round = curve[metric.best([point[1] for point in curve])][0]
        rounds = [point[0] for point in curve[-cell.tail :]] if cell.tail else [selected_round]
        scores = [self.store.scores(row.id, round, model, "test") for round in rounds]
        recorded = [score for score in scores if score is not None]
        return (selected_round, mean_scores(recorded)) if recorded else None

    def reference(self, cell: Cell, names: Sequence[str], model: str, seed: int) -> np.ndarray | None:
        """Each client's value of a reference model on test data, in the same cell with the same seed, or None."""
        for method in self.standing(cell, *names):
            row = self.rows.get(run_id(cell.id, method.title, seed))
            selected = self.selected(cell, row, model) if row is not None and row.status == "done" else None
            if selected is not None:
                return selected[1].values[self.metric(cell).name]
        return None

    def line(self, cell: Cell, method: Method, model: str) -> Line:
        """Build one line of the table."""
        metrics = self.metrics(cell)
        metric = metrics[0]
        summaries: list[Summary] = []
        pooled: dict[str, list[float]] = {measured.name: [] for measured in metrics}
        rounds: list[int] = []
        hurt: dict[str, list[float]] = {"local": [], "global": []}
        plain: set[str] = set()
        rows = self.finished(cell, method)
        for row in rows:
            selected = self.selected(cell, row, model)
            if selected is None:
                continue
            rounds.append(selected[0])
            summaries.append(summarise(selected[1], metric))
            for name in pooled:
                pooled[name].append(selected[1].pooled.get(name, math.nan))
            values = selected[1].values[metric.name]
            global_values = self.reference(cell, ("fedavg", "fedavg-ft"), "global", row.seed)
            whose = FEDAVG
            if global_values is None:
                whose, own_global = OWN, self.selected(cell, row, "global")
                global_values = own_global[1].values[metric.name] if own_global else None
            for key, reference in (
                ("local", self.reference(cell, ("local",), "local", row.seed)),
                ("global", global_values),
            ):
                if reference is not None:
                    plain |= {whose} if key == "global" else set()
                    hurt[key].append(hurt_fraction(values, reference, metric))
        runs = (self.rows.get(run_id(cell.id, method.title, seed)) for seed in self.experiment.seed_list)
        failed = sum(row is not None and row.status == "diverged" for row in runs)

        def over(name: str) -> OverSeeds:
            return over_seeds([getattr(s, name) for s in summaries])

        return Line(
            cell=cell.id,
            method=method.title,
            model=model,
            metric=metric.name,
            pooled=over("pooled"),
            mean=over("mean"),
            spread=over("std"),
            worst10=over("worst10"),
            worst=over("worst"),
            loss=over("loss"),
            metrics={name: over_seeds(values) for name, values in pooled.items()},
            hurt_local=over_seeds(hurt["local"]) if hurt["local"] else None,
            hurt_global=over_seeds(hurt["global"]) if hurt["global"] else None,
            rounds=tuple(rounds),
            seconds=over_seeds([r.seconds for r in rows]),
            published=next(iter(self._published(cell, method, model)), None),
            failed=failed,
            global_of=tuple(sorted(plain)),
        )

    def _published(self, cell: Cell, method: Method, model: str) -> list[Published]:
        """A model's published values, with what the measured data lack of the paper's."""
        lacks = [note.removeprefix(INCOMPLETE) for note in self.notes(cell) if note.startswith(INCOMPLETE)]
        return [
            value.model_copy(update={"other_data": value.other_data or "; ".join(lacks)})
            for value in method.published
            if value.model == model
        ]

    def round_seconds(self, cell: Cell, method: Method) -> OverSeeds:
        """Training seconds per round of a method, without compilation."""
        return over_seeds([row.seconds / row.round for row in self.finished(cell, method)])

    def names(self, cell: Cell, method: Method) -> tuple[str, ...]:
        """The named models of a method in a cell: those that it always has, then the others by name."""
        always = ALGORITHMS[method.name].model_names
        runs = (run_id(cell.id, method.title, seed) for seed in self.experiment.seed_list)
        names = {name for run in runs if run in self.rows for name in self.store.models(run)}
        names |= {value.model for value in method.published}
        return (*always, *sorted(names.difference(always)))

    @cached_property
    def lines(self) -> list[Line]:
        """The lines of all cells, methods and named models."""
        return [
            self.line(cell, method, model)
            for cell in self.experiment.cells
            for method in cell.methods
            for model in self.names(cell, method)
        ]

    @cached_property
    def further(self) -> list[Line]:
        """The lines again of models with several published values, with the second, the third, ... of them."""
        cells = {cell.id: cell for cell in self.experiment.cells}
        methods = {(cell.id, method.title): method for cell in cells.values() for method in cell.methods}
        return [
            replace(line, published=value)
            for line in self.lines
            for value in self._published(cells[line.cell], methods[line.cell, line.method], line.model)[1:]
        ]

    def gaps(self, cell: Cell) -> list[GapLine]:
        """The published gaps of a cell with the measured ones."""
        lines: list[GapLine] = []
        unit = METRICS[ALWAYS[self.task(cell)][0]].unit
        for gap in cell.gaps:
            larger, smaller = self._pooled(cell, gap.larger), self._pooled(cell, gap.smaller)
            differences = [unit * (larger[seed] - smaller[seed]) for seed in larger if seed in smaller]
            lines.append(GapLine(gap, over_seeds(differences)))
        return lines

    def _pooled(self, cell: Cell, name: str) -> dict[int, float]:
        """Seed -> test accuracy (or mse) over all samples at the selected round, for "method label/model"."""
        title, _, model = name.rpartition("/")
        metric = ALWAYS[self.task(cell)][0]
        return {
            seed: scores.pooled[metric]
            for method in cell.methods
            if method.title == title
            for seed, scores in self.by_seed(cell, method, model).items()
        }

    def by_seed(self, cell: Cell, method: Method, model: str) -> dict[int, ClientScores]:
        """Seed -> every client's test scores of a named model at the selected round."""
        selected = {row.seed: self.selected(cell, row, model) for row in self.finished(cell, method)}
        return {seed: found[1] for seed, found in selected.items() if found is not None}

    def curves(
        self, cell: Cell, split: str, models: Sequence[str] | None = None, *, unfinished: bool = False
    ) -> list[Curve]:
        """The curves of a cell's named models on one split, over the finished seeds.

        unfinished: of a method without any, over the seeds that have begun, as far as all of them are evaluated.
        """
        curves: list[Curve] = []
        for method in cell.methods:
            for model in self.names(cell, method):
                if models is not None and model not in models:
                    continue
                metric = self.metric(cell).name
                rows = self.finished(cell, method) or (self._begun(cell, method) if unfinished else [])
                runs = [self.store.curve(row.id, model, split, metric) for row in rows]
                runs = _common([run for run in runs if run])
                if not runs:
                    continue
                table = np.array(runs, dtype=np.float64)  # (seeds, rounds, 3)
                mean = table.mean(axis=0)
                half = half_widths(table)
                rounds, (score, loss), (score_ci95, loss_ci95) = mean[:, 0], mean[:, 1:].T, half[:, 1:].T
                curves.append(Curve(cell.id, method.title, model, split, rounds, score, score_ci95, loss, loss_ci95))
        return curves


@dataclass(frozen=True)
class Chosen:
    """A method's best setting, by the validation score of its primary model (over all samples, mean over seeds).

    method: its name; tried: number of settings compared; validation: that score; line: the setting's line on test
    data.
    """

    method: str
    tried: int
    validation: OverSeeds
    line: Line


def validation_score(results: Results, cell: Cell, method: Method, model: str) -> OverSeeds:
    """Summarise the validation score of the round that the table shows over seeds; 0 seeds if there is none.

    That is the best round where the cell selects it by validation data, otherwise the last one.
    """
    metric = results.metric(cell)
    curves = (results.store.curve(row.id, model, "validation", metric.name) for row in results.finished(cell, method))
    courses = [[point[1] for point in curve] for curve in curves if curve]
    by_validation = cell.select == "best-validation"
    return over_seeds([course[metric.best(course) if by_validation else -1] for course in courses])


@dataclass(frozen=True)
class Best:
    """A method's best setting: its title, its validation score, and how many settings were compared."""

    title: str
    validation: OverSeeds
    tried: int


def best_settings(results: Results, cell: Cell) -> dict[str, Best]:
    """Every method's setting with the best validation score of its primary model, the first one of equals.

    A method without validation scores is left out.
    """
    best: dict[str, Best] = {}
    metric = results.metric(cell)
    for method in cell.methods:
        score = validation_score(results, cell, method, results.names(cell, method)[0])
        known = best.get(method.name)
        if score.seeds and (known is None or metric.better(score.mean, known.validation.mean)):
            tried = sum(other.name == method.name for other in cell.methods)
            best[method.name] = Best(method.title, score, tried)
    return best


def chosen(results: Results, cell: Cell) -> list[Chosen]:
    """Every method's best setting with its line on test data, in the cell's order; see `Results.best`."""
    found = [(name, best, cell.method(best.title)) for name, best in results.best(cell).items()]
    return [
        Chosen(name, best.tried, best.validation, results.line(cell, method, results.names(cell, method)[0]))
        for name, best, method in found
    ]
