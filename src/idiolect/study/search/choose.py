"""Selection: settings of methods tried on the same seeds, each method's best chosen on validation data alone."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from idiolect.core.errors import ConfigError, require
from idiolect.data.federated import FederatedData
from idiolect.metrics.base import Metric
from idiolect.study.experiment import Cell, Experiment, experiment_of
from idiolect.study.search.engine import Entry, Setting, Sweeper
from idiolect.study.search.folds import Folds
from idiolect.study.search.space import L2, check_l2, drawn, grid, shown, space_of
from idiolect.study.summary import OverSeeds, over_seeds

NONE = OverSeeds(math.nan, math.nan, math.nan, 0)


@dataclass(frozen=True)
class Tried:
    """A setting and its scores, over all samples, of the primary model in its last round, over seeds.

    validation: in cross-validation each seed's score is its mean over folds. test: of chosen settings only. rounds:
    rounds done; failures: what diverged, by name. A setting of which a run diverged cannot be chosen.
    """

    setting: Setting
    validation: OverSeeds
    rounds: int
    failures: tuple[str, ...] = ()
    chosen: bool = False
    test: OverSeeds | None = None


@dataclass(frozen=True)
class Swept:
    """The outcome of a sweep. budget: for each method, settings tried and rounds x runs spent on choosing."""

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
        """The best of the chosen settings by validation score."""
        return ranked(self.chosen, self.metric)[0]


def settings_of(
    experiment: Experiment, spaces: Mapping[str, Mapping[str, Any]], *, budget: int | None = None, seed: int = 0
) -> list[Setting]:
    """Every setting to try, checked: all of each method's grid, or `budget` of each, drawn at random.

    experiment: one cell with the methods. Raises `ConfigError` for what is unknown or out of range, and if methods
    would get unequal budgets.
    """
    cell = experiment.cells[0]
    check_swept(cell, spaces)
    found: list[Setting] = []
    counts: dict[str, int] = {}
    for method in cell.methods:
        space = space_of(method.name, spaces.get(method.name, {}))
        choices = grid(space) if budget is None else drawn(space, budget, seed)
        counts[method.title] = len(choices)
        found += [setting_of(cell, method.spec, values) for values in choices]
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{title} {count}" for title, count in counts.items())
        raise ConfigError(f"unequal tuning budgets ({told} settings); give --budget, the same number for each")
    return found


def check_choosable(data: FederatedData, folded: bool) -> None:
    """Refuse data on which nothing can be chosen: without a validation split, and not in folds."""
    has = folded or data.validation.count > 0
    require(has, "the data have no validation split to choose on; set data.validation=0.15, say, or cross-validate")


def check_swept(cell: Cell, spaces: Mapping[str, Any]) -> None:
    """Refuse values to try of a method that is not swept."""
    for name in spaces:
        require(name in {m.name for m in cell.methods}, f"'{name}' is given values to try, but it is not swept")


def setting_of(cell: Cell, spec: Mapping[str, Any], values: Mapping[str, Any]) -> Setting:
    """A setting from a method's fixed hyper-parameters and the chosen values."""
    own = {key: value for key, value in values.items() if key != L2}
    model = dict(cell.model)
    if L2 in values:
        check_l2(values[L2])
        model["l2"] = values[L2]
    method = {**spec, **own, "label": f"{spec['name']} {shown(values)}"}
    given = {**cell.model_dump(mode="json"), "model": model, "methods": [method], "gaps": [], "tune": False}
    return Setting(values, experiment_of({"name": "sweep", "cells": [given]}, "sweep").cells[0])


def judge(sweeper: Sweeper, setting: Setting, seeds: Sequence[int], round: int, split: str = "validation") -> Tried:
    """A setting's scores in one round; with runs that diverged, none."""
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
    whole = not failures and len(values) == len(seeds)
    return Tried(setting, over_seeds(values) if whole else NONE, round, tuple(failures))


def ranked(tried: Sequence[Tried], metric: Metric) -> list[Tried]:
    """Settings that can be chosen, the best validation score first; of equals the one that was named first."""
    sign = -1 if metric.higher else 1
    return sorted((t for t in tried if t.validation.seeds), key=lambda t: sign * t.validation.mean)


def rungs_of(rounds: int, settings: int, eta: int) -> list[int]:
    """Successive halving: the rounds after which all but 1/eta of the settings are dropped, and the last round."""
    require(eta >= 2, f"eta = {eta} must be at least 2")
    steps = 0
    while settings > eta ** (steps + 1) - 1 and rounds // eta ** (steps + 1) >= 1:
        steps += 1
    return [max(1, rounds // eta**k) for k in range(steps, -1, -1)]


Propose = Callable[[Sequence[Tried]], Sequence[Setting]]
"""What to try next, given all that was tried, in the order in which it was proposed; nothing ends a sweep."""


def all_of(settings: Sequence[Setting]) -> Propose:
    """Propose these settings, and nothing after them."""
    return lambda tried: () if tried else settings


def tune(
    sweeper: Sweeper, experiment: Experiment, propose: Propose, *, eta: int | None = None, show_test: bool = False
) -> Swept:
    """Try settings, choose each method's best on validation data, and only then look at test data.

    eta: successive halving, each method by itself. show_test: test scores of all settings that ran to the end, which
    have no say in what is chosen. In cross-validation the chosen setting is trained anew on all training data.
    """
    metric, rounds = sweeper.metrics[0], experiment.cells[0].rounds
    seeds, folds = experiment.seed_list, sweeper.folds
    check_choosable(sweeper.data, folds is not None)
    spent: dict[str, dict[str, int]] = {}
    results: list[Tried] = []
    alive: list[int] = []  # tried to the last round
    while settings := propose(results):
        here = list(range(len(results), len(results) + len(settings)))
        results += [Tried(setting, NONE, 0) for setting in settings]
        rungs = [rounds] if eta is None else rungs_of(rounds, _largest(settings), eta)
        for before, rung in zip([0, *rungs], rungs, strict=False):
            sweeper.run(list(_entries([results[i].setting for i in here], seeds, folds)), rung)
            for i in here:
                results[i] = judge(sweeper, results[i].setting, seeds, rung)
                used = spent.setdefault(results[i].setting.method, {"settings": 0, "rounds x runs": 0})
                used["settings"] += before == 0
                used["rounds x runs"] += (rung - before) * len(seeds) * (folds.count if folds else 1)
            if rung != rungs[-1] and eta is not None:
                here = sorted(i for name in spent for i in _kept(results, here, name, metric, eta))
        alive += here
    winners = {i for name in spent for i in _kept(results, alive, name, metric, len(results))[:1]}
    wanted = [i for i in alive if i in winners or (show_test and results[i].validation.seeds)]
    sweeper.run([Entry(results[i].setting, seed) for i in wanted for seed in seeds], rounds, ("test",))
    for i in wanted:
        results[i] = _with_test(sweeper, results[i], seeds, rounds, i in winners)
    names = list(spent)  # methods one after the other, each in the order in which its settings were tried
    return Swept(experiment, metric, tuple(sorted(results, key=lambda t: names.index(t.setting.method))), spent)


def _entries(settings: Sequence[Setting], seeds: Sequence[int], folds: Folds | None) -> Iterator[Entry]:
    for setting in settings:
        for seed in seeds:
            for fold in range(folds.count) if folds is not None else [None]:
                yield Entry(setting, seed, fold)


def _largest(settings: Sequence[Setting]) -> int:
    names = [s.method for s in settings]
    return max(names.count(name) for name in names)


def _kept(results: Sequence[Tried], alive: Sequence[int], name: str, metric: Metric, eta: int) -> list[int]:
    """The best 1/eta of a method's settings that are still tried, best first."""
    mine = [i for i in alive if results[i].setting.method == name]
    order = ranked([results[i] for i in mine], metric)
    place = {id(results[i]): i for i in mine}
    return [place[id(t)] for t in order[: max(1, len(mine) // eta)]]


def _with_test(sweeper: Sweeper, tried: Tried, seeds: Sequence[int], rounds: int, chosen: bool) -> Tried:
    """The same with its test score: of the runs that validation data judged, or, after folds, of runs on all data."""
    judged = judge(sweeper, tried.setting, seeds, rounds, "test")
    failures = (*tried.failures, *judged.failures)
    return Tried(tried.setting, tried.validation, tried.rounds, failures, chosen, judged.validation)
