"""Try settings of methods on the same seeds, and choose each method's best on validation data only."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from idiolect.core.errors import ConfigError, require
from idiolect.data.federated import FederatedData
from idiolect.metrics.base import Metric
from idiolect.study.search.engine import Entry, Setting, Sweeper
from idiolect.study.search.folds import Folds
from idiolect.study.search.space import L2, check_l2, drawn, grid, shown, space_of
from idiolect.study.spec.experiment import Cell, Experiment, experiment_of
from idiolect.study.store.summary import OverSeeds, over_seeds

NONE = OverSeeds(math.nan, math.nan, math.nan, 0)


@dataclass(frozen=True)
class Tried:
    """A tried setting and its primary model's scores (over all samples, in the last round), over seeds.

    validation: in cross-validation each seed's score is the mean over its folds. test: of chosen settings, and of all
    with `show_test`. rounds: rounds done. failures: a line for each run that diverged or has no score; a setting that
    failed before the choice cannot be chosen.
    """

    setting: Setting
    validation: OverSeeds
    rounds: int
    failures: tuple[str, ...] = ()
    chosen: bool = False
    test: OverSeeds | None = None

    def to_dict(self) -> dict[str, Any]:
        """A record of plain values; scores are (mean, std, half-width, seeds), None for what was not measured."""
        scores = {"validation": self.validation, "test": self.test}
        return {
            "method": self.setting.method,
            "label": self.setting.cell.methods[0].title,
            "values": dict(self.setting.values),
            "rounds": self.rounds,
            "chosen": self.chosen,
            "failures": list(self.failures),
            **{name: None if of is None or not of.seeds else list(astuple(of)) for name, of in scores.items()},
        }


@dataclass(frozen=True)
class Swept:
    """The outcome of a sweep. budget: for each method, the settings tried and the rounds x runs spent on choosing."""

    experiment: Experiment
    metric: Metric
    tried: tuple[Tried, ...]
    budget: Mapping[str, Mapping[str, int]]

    @property
    def chosen(self) -> list[Tried]:
        """The chosen setting of every method that has one."""
        return [one for one in self.tried if one.chosen]

    @property
    def best(self) -> Tried:
        """The chosen setting with the best validation score."""
        return ranked(self.chosen, self.metric)[0]


def settings_of(
    experiment: Experiment, spaces: Mapping[str, Mapping[str, Any]], *, budget: int | None = None, seed: int = 0
) -> list[Setting]:
    """List the settings to try: each method's whole grid, or `budget` random settings of each method.

    experiment: has one cell, with the methods. Raises `ConfigError` for unknown keys, values out of range, and
    methods with unequal budgets.
    """
    cell = experiment.cells[0]
    check_swept(cell, spaces)
    settings: list[Setting] = []
    counts: dict[str, int] = {}
    for method in cell.methods:
        space = space_of(method.name, spaces.get(method.name, {}))
        choices = grid(space) if budget is None else drawn(space, budget, seed)
        counts[method.title] = len(choices)
        settings += [setting_of(cell, method.spec, values) for values in choices]
    if len(set(counts.values())) > 1:
        budgets = ", ".join(f"{title} {count}" for title, count in counts.items())
        raise ConfigError(f"unequal tuning budgets ({budgets} settings); give --budget, the same number for each")
    return settings


def check_choosable(data: FederatedData, folded: bool) -> None:
    """Raise `ConfigError` if there is nothing to choose on: neither a validation split nor folds."""
    choosable = folded or data.validation.count > 0
    require(
        choosable, "the data have no validation split to choose on; set data.validation=0.15, say, or cross-validate"
    )


def check_swept(cell: Cell, spaces: Mapping[str, Any]) -> None:
    """Raise `ConfigError` if `spaces` names a method that is not swept."""
    for name in spaces:
        require(name in {m.name for m in cell.methods}, f"'{name}' is given values to try, but it is not swept")


def setting_of(cell: Cell, spec: Mapping[str, Any], values: Mapping[str, Any]) -> Setting:
    """Build a setting from a method's specification and the values to try."""
    hyperparameters = {key: value for key, value in values.items() if key != L2}
    model = dict(cell.model)
    if L2 in values:
        check_l2(values[L2])
        model["l2"] = values[L2]
    method = {**spec, **hyperparameters, "label": f"{spec['name']} {shown(values)}"}
    fields = {**cell.model_dump(mode="json"), "model": model, "methods": [method], "gaps": [], "tune": False}
    return Setting(values, experiment_of({"name": "sweep", "cells": [fields]}, "sweep").cells[0])


def judge(sweeper: Sweeper, setting: Setting, seeds: Sequence[int], round: int, split: str = "validation") -> Tried:
    """Score a setting in one round, over seeds; it has no score if any of its runs diverged."""
    folds = range(sweeper.folds.count) if sweeper.folds is not None and split == "validation" else [None]
    values: list[float] = []
    failures: list[str] = []
    for seed in seeds:
        scores: list[float] = []
        for fold in folds:
            row = sweeper.store.run(sweeper.row(Entry(setting, seed, fold)).id)
            score = None if row is None else sweeper.score(row, round, split)
            if row is not None and row.status == "diverged":
                failures.append(f"{row.id}: {row.message}")
            elif row is not None and score is not None and math.isnan(score):
                failures.append(f"{row.id}: {sweeper.metrics[0].name} has no value on {split} data")
            elif score is not None:
                scores.append(score)
        if len(scores) == len(folds):
            values.append(float(np.mean(scores)))
    complete = not failures and len(values) == len(seeds)
    return Tried(setting, over_seeds(values) if complete else NONE, round, tuple(failures))


def ranked(tried: Sequence[Tried], metric: Metric) -> list[Tried]:
    """Sort the settings that have a validation score, the best first; ties keep their order."""
    sign = -1 if metric.higher else 1
    return sorted((t for t in tried if t.validation.seeds), key=lambda t: sign * t.validation.mean)


def rungs_of(rounds: int, settings: int, eta: int) -> list[int]:
    """The rungs of successive halving: the rounds after which 1/eta of the settings are kept, and the last round."""
    require(eta >= 2, f"eta = {eta} must be at least 2")
    steps = 0
    while settings > eta ** (steps + 1) - 1 and rounds // eta ** (steps + 1) >= 1:
        steps += 1
    return [max(1, rounds // eta**k) for k in range(steps, -1, -1)]


Propose = Callable[[Sequence[Tried]], Sequence[Setting]]
"""Maps all settings tried so far, in the order proposed, to the next ones; an empty answer ends the sweep."""


def all_of(settings: Sequence[Setting]) -> Propose:
    """Propose all these settings at once, and then no more."""
    return lambda tried: () if tried else settings


def tune(
    sweeper: Sweeper, experiment: Experiment, propose: Propose, *, eta: int | None = None, show_test: bool = False
) -> Swept:
    """Try settings, choose each method's best on validation data, and only then evaluate on test data.

    eta: successive halving within each method; None: every setting runs to the end. show_test: also evaluate on test
    data every setting that ran to the end, which does not change the choice. After cross-validation, a chosen setting
    is trained again on all training data.
    """
    metric, rounds = sweeper.metrics[0], experiment.cells[0].rounds
    seeds, folds = experiment.seed_list, sweeper.folds
    check_choosable(sweeper.data, folds is not None)
    spent: dict[str, dict[str, int]] = {}
    results: list[Tried] = []
    completed: list[int] = []  # settings that reached the last round
    while settings := propose(results):
        active = list(range(len(results), len(results) + len(settings)))
        results += [Tried(setting, NONE, 0) for setting in settings]
        rungs = [rounds] if eta is None else rungs_of(rounds, _largest(settings), eta)
        for before, rung in zip([0, *rungs], rungs, strict=False):
            sweeper.run(list(_entries([results[i].setting for i in active], seeds, folds)), rung)
            for i in active:
                results[i] = judge(sweeper, results[i].setting, seeds, rung)
                cost = spent.setdefault(results[i].setting.method, {"settings": 0, "rounds x runs": 0})
                cost["settings"] += before == 0
                cost["rounds x runs"] += (rung - before) * len(seeds) * (folds.count if folds else 1)
            if rung != rungs[-1] and eta is not None:
                active = sorted(i for name in spent for i in _best_of(results, active, name, metric, eta))
        completed += active
    winners = {i for name in spent for i in _best_of(results, completed, name, metric, len(results))[:1]}
    tested = [i for i in completed if i in winners or (show_test and results[i].validation.seeds)]
    sweeper.run([Entry(results[i].setting, seed) for i in tested for seed in seeds], rounds, ("test",))
    for i in tested:
        results[i] = _with_test(sweeper, results[i], seeds, rounds, i in winners)
    names = list(spent)  # sorted by method; a method's settings stay in the order in which they were tried
    return Swept(experiment, metric, tuple(sorted(results, key=lambda t: names.index(t.setting.method))), spent)


def _entries(settings: Sequence[Setting], seeds: Sequence[int], folds: Folds | None) -> Iterator[Entry]:
    for setting in settings:
        for seed in seeds:
            for fold in range(folds.count) if folds is not None else [None]:
                yield Entry(setting, seed, fold)


def _largest(settings: Sequence[Setting]) -> int:
    names = [s.method for s in settings]
    return max(names.count(name) for name in names)


def _best_of(results: Sequence[Tried], indices: Sequence[int], name: str, metric: Metric, eta: int) -> list[int]:
    """The best 1/eta (at least one) of a method's settings among `indices`, the best first."""
    candidates = [i for i in indices if results[i].setting.method == name]
    order = ranked([results[i] for i in candidates], metric)
    index_of = {id(results[i]): i for i in candidates}
    return [index_of[id(t)] for t in order[: max(1, len(candidates) // eta)]]


def _with_test(sweeper: Sweeper, tried: Tried, seeds: Sequence[int], rounds: int, chosen: bool) -> Tried:
    """Add the test score: of the runs that were judged, or after cross-validation of runs on all training data."""
    judged = judge(sweeper, tried.setting, seeds, rounds, "test")
    failures = (*tried.failures, *judged.failures)
    return Tried(tried.setting, tried.validation, tried.rounds, failures, chosen, judged.validation)
