"""What is tried, judged and chosen, on scores that a table says: nothing here trains."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import ConfigError
from idiolect.metrics.registry import METRICS
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.run.resolve import Workbench
from idiolect.study.search.choose import (
    NONE,
    Swept,
    Tried,
    all_of,
    check_choosable,
    judge,
    ranked,
    rungs_of,
    setting_of,
    settings_of,
    tune,
)
from idiolect.study.search.engine import Entry, Sweeper
from idiolect.study.search.folds import Folds
from idiolect.study.spec.experiment import comparison_of
from idiolect.study.store.store import Store
from idiolect.study.store.summary import OverSeeds, over_seeds
from tests.federations import classification

NAN = math.nan
ACCURACY, MSE = METRICS["accuracy"], METRICS["mse"]
BARE = classification((4, 3, 5)).data
DATA = replace(BARE, validation=BARE.test)


def experiment_with(methods=("fedavg",), **settings):
    return comparison_of("d", {"name": "synthetic"}, {"name": "mlr"}, list(methods), **{"rounds": 8} | settings)


def settings(count, method="fedavg"):
    return settings_of(experiment_with([method]), {method: {"rate": [0.1 * (i + 1) for i in range(count)]}})


@dataclass
class Told(Sweeper):
    """score(setting's rate times 10, seed, fold, round, split) stands for a run: None diverges."""

    score_of: object = None
    asked: list = field(default_factory=list)

    def run(self, entries, until, splits=("validation",)):
        self.asked.append((until, splits, [(e.setting.method, self.rate(e), e.seed, e.fold) for e in entries]))
        for entry in entries:
            row = self.store.start(self.row(entry))
            value = self.score_of(self.rate(entry), entry.seed, entry.fold, until, splits[0])
            if value is None:
                self.store.finish(row.id, "diverged", "why")
                continue
            each, name = np.full(3, 0.5), self.metrics[0].name
            for model, pooled in ((ALGORITHMS[row.method].model_names[0], value), ("aside", 1 - value)):
                scores = ClientScores(model, splits[0], np.asarray([2, 2, 2]), each, {name: each}, {name: pooled})
                self.store.record(row.id, until, [scores], seconds=0.0, compile_seconds=0.0)
            self.store.finish(row.id, "done")

    def rate(self, entry):
        return round(10 * entry.setting.values["rate"])


@pytest.fixture
def told(tmp_path):
    with Store(tmp_path / "out") as store:

        def made(score_of, folds=None, metric=ACCURACY, data=DATA):
            return Told(store, Workbench(data=data), data, folds, 0, (metric,), score_of=score_of)

        yield made


def test_the_best_validation_score_wins_whatever_the_test_score():
    setting = settings(1)[0]

    def tried(validation, test):
        return Tried(setting, over_seeds(validation), 1, (), False, OverSeeds(test, 0, 0, 1))

    low, high, none = tried([0.5, 0.6], 0.99), tried([0.6, 0.7], 0.1), Tried(setting, OverSeeds(NAN, 0, 0, 0), 1)
    again = tried([0.5, 0.6], 0.5)
    assert ranked([low, none, high, again], ACCURACY) == [high, low, again]
    assert ranked([again, low, high, none], MSE) == [again, low, high]


def test_rungs_grow_by_eta_up_to_the_last_round():
    assert rungs_of(90, 9, 3) == [10, 30, 90]
    assert rungs_of(90, 8, 3) == [30, 90]
    assert rungs_of(90, 3, 3) == [30, 90]
    assert rungs_of(90, 2, 3) == rungs_of(90, 1, 3) == [90]
    assert rungs_of(2, 100, 2) == [1, 2]
    assert rungs_of(8, 100, 3) == [2, 8]
    assert rungs_of(9, 100, 3) == [1, 3, 9]
    with pytest.raises(ConfigError, match="eta = 1 must be at least 2"):
        rungs_of(90, 9, 1)


def test_budgets_are_equal_and_settings_checked_before_anything_runs():
    experiment = experiment_with(("fedavg", "pfedme"))
    spaces = {"fedavg": {"rate": "0.1,0.2"}, "pfedme": {"rate": "0.1,0.2,0.3"}}
    with pytest.raises(ConfigError, match=r"fedavg 2, pfedme 3 settings.*--budget"):
        settings_of(experiment, spaces)
    names = [s.method for s in settings_of(experiment, spaces, budget=2)]
    assert names == ["fedavg", "fedavg", "pfedme", "pfedme"]
    with pytest.raises(ConfigError, match=r"rate = -1\.0 must be greater than 0"):
        settings_of(experiment_with(), {"fedavg": {"rate": "0.1,-1"}})
    with pytest.raises(ConfigError, match=r"model\.l2 = -1 must be a number that is not negative"):
        settings_of(experiment_with(), {"fedavg": {"model.l2": "-1"}})
    with pytest.raises(ConfigError, match="'pfedme' is given values to try, but it is not swept"):
        settings_of(experiment_with(), {"pfedme": {"rate": "1"}})


def test_a_grid_is_tried_in_its_order_and_draws_are_named_by_the_seed():
    space = {"fedavg": {"rate": "0.1,0.2", "local_steps": "3,4"}}
    tried = [tuple(s.values.values()) for s in settings_of(experiment_with(), space)]
    assert tried == [(0.1, 3), (0.1, 4), (0.2, 3), (0.2, 4)]
    space = {"fedavg": {"rate": "uniform(0.1,0.9)"}}
    one, same, other = (
        [s.values["rate"] for s in settings_of(experiment_with(), space, budget=3, seed=seed)] for seed in (1, 1, 2)
    )
    assert one == same != other
    assert [s.values for s in settings_of(experiment_with(["fedavg", "local"]), {})] == [{}, {}]


def test_a_setting_is_the_cell_with_one_method_and_its_values():
    gap = {"larger": "a/global", "smaller": "b/global", "value": 1.0}
    methods = [{"name": "fedavg", "label": "a", "rate": 0.5, "local_steps": 7}, {"name": "fedavg", "label": "b"}]
    splits = ["train", "validation", "test"]
    cell = experiment_with(methods, gaps=[gap], tune=True, splits=splits, cohort=2, metric="macro-f1").cells[0]
    setting = setting_of(cell, cell.methods[0].spec, {"rate": 0.25, "model.l2": 0.01})
    (method,) = setting.cell.methods
    assert setting.values == {"rate": 0.25, "model.l2": 0.01}
    assert setting.method == "fedavg"
    assert method.spec == {"name": "fedavg", "rate": 0.25, "local_steps": 7}
    assert method.title == "fedavg rate=0.25, model.l2=0.01"
    assert setting.cell.model == {"name": "mlr", "l2": 0.01}
    assert cell.model == {"name": "mlr"}
    changes = {"methods": (method,), "model": setting.cell.model, "gaps": (), "tune": False}
    assert setting.cell == cell.model_copy(update=changes)


def test_data_without_validation_samples_can_only_be_chosen_on_in_folds(told):
    check_choosable(DATA, False)
    check_choosable(BARE, True)
    with pytest.raises(ConfigError, match="no validation split to choose on; set data"):
        check_choosable(BARE, False)
    with pytest.raises(ConfigError, match="no validation split to choose on; set data"):
        tune(told(None, data=BARE), experiment_with(), all_of(settings(1)))


def test_a_setting_is_judged_by_its_seeds_in_that_round(told):
    sweeper, (setting,) = told(lambda rate, seed, fold, until, split: 0.5 + seed / 8 - until / 64), settings(1)
    for until in (4, 8):
        sweeper.run([Entry(setting, seed) for seed in (0, 1)], until)
    assert judge(sweeper, setting, (0, 1), 4) == Tried(setting, over_seeds([0.4375, 0.5625]), 4)
    assert judge(sweeper, setting, (1,), 8) == Tried(setting, over_seeds([0.5]), 8)
    for seeds, round, split in (((0, 1, 2), 8, "validation"), ((0,), 6, "validation"), ((0,), 8, "test")):
        found = judge(sweeper, setting, seeds, round, split)
        assert (found.validation, found.failures) == (NONE, ())


def test_what_failed_is_named_and_has_no_score(told):
    sweeper, (setting,) = told(lambda rate, seed, *_: (0.5, None, NAN)[seed]), settings(1)
    sweeper.run([Entry(setting, seed) for seed in (0, 1, 2)], 8)
    found = judge(sweeper, setting, (0, 1, 2), 8)
    run = "d/fedavg rate=0.1/seed"
    why = (f"{run}1: why", f"{run}2: accuracy has no value on validation data")
    assert found == Tried(setting, NONE, 8, why)
    assert judge(sweeper, setting, (0,), 8).validation == over_seeds([0.5])


def test_a_seeds_score_is_its_mean_over_folds_and_test_data_have_none(told):
    sweeper = told(lambda rate, seed, fold, *_: 0.5 if fold is None else (seed + 1) * (fold + 1) / 8, Folds(BARE, 2))
    (setting,) = settings(1)
    sweeper.run([Entry(setting, seed, fold) for seed in (0, 1) for fold in (0, 1)], 8)
    assert judge(sweeper, setting, (0, 1), 8).validation == over_seeds([1.5 / 8, 3 / 8])
    sweeper.run([Entry(setting, 2, 0)], 8)
    assert judge(sweeper, setting, (0, 2), 8).validation == NONE
    sweeper.run([Entry(setting, 0)], 8, ("test",))
    assert judge(sweeper, setting, (0,), 8, "test").validation == over_seeds([0.5])


def results_of(swept):
    """Of each setting: rate times 10, mean validation score, rounds, whether chosen, mean test score."""
    return [
        (round(10 * t.setting.values["rate"]), t.validation.mean, t.rounds, t.chosen, t.test and t.test.mean)
        for t in swept.tried
    ]


@pytest.mark.parametrize(("metric", "best"), [(ACCURACY, 2), (MSE, 1)])
def test_a_grid_is_chosen_from_and_nobody_looks_at_the_others_test_data(told, metric, best):
    scores = {1: 0.25, 2: 0.75, 3: 0.75, 4: 0.25}

    def score(rate, seed, fold, until, split):
        return scores[rate] if split == "validation" else 0.5

    sweeper = told(score, metric=metric)
    swept = tune(sweeper, experiment_with(seeds=2), all_of(settings(4)))
    expected = [(rate, scores[rate], 8, rate == best, 0.5 if rate == best else None) for rate in scores]
    assert results_of(swept) == expected
    assert swept.budget == {"fedavg": {"settings": 4, "rounds x runs": 8 * 4 * 2}}
    assert swept.metric is metric
    assert [t.setting.values["rate"] for t in swept.chosen] == [pytest.approx(best / 10)]
    everything = [("fedavg", rate, seed, None) for rate in scores for seed in (0, 1)]
    assert sweeper.asked == [
        (8, ("validation",), everything),
        (8, ("test",), [("fedavg", best, seed, None) for seed in (0, 1)]),
    ]


def test_asked_to_all_that_ran_to_the_end_have_test_scores_and_the_choice_stays(told):
    def score(rate, seed, fold, until, split):
        return None if rate == 2 else rate / 8 if split == "validation" else 1 - rate / 8

    swept = tune(told(score), experiment_with(), all_of(settings(3)), show_test=True)
    assert [row[3:] for row in results_of(swept)] == [(False, 0.875), (False, None), (True, 0.625)]
    assert [len(t.failures) for t in swept.tried] == [0, 1, 0]


def test_each_method_has_its_own_choice_and_the_best_is_the_best_of_these(told):
    one, other, seen = settings(3), settings(2, "local"), []
    turns = [[one[0], other[0], one[1], other[1]], one[2:], ()]

    def propose(tried):
        seen.append([t.validation.mean for t in tried])
        return turns[len(seen) - 1]

    swept = tune(told(lambda rate, *_: rate / 8), experiment_with(("fedavg", "local")), propose)
    assert seen == [[], [0.125, 0.125, 0.25, 0.25], [0.125, 0.125, 0.25, 0.25, 0.375]]
    shown = [(t.setting.method, round(10 * t.setting.values["rate"]), t.chosen) for t in swept.tried]
    assert shown == [("fedavg", 1, False), ("fedavg", 2, False), ("fedavg", 3, True), ("local", 1, False),
                     ("local", 2, True)]  # fmt: skip
    assert swept.budget == {
        "fedavg": {"settings": 3, "rounds x runs": 24},
        "local": {"settings": 2, "rounds x runs": 16},
    }
    assert (swept.best.setting.method, len(swept.chosen)) == ("fedavg", 2)


def test_halving_keeps_the_best_of_each_rung_and_only_these_can_be_chosen(told):
    course = {2: (0.5, 0.75, 0.25, 0.625), 4: (0.0, 0.5, 0.0, 0.25), 8: (0.0, 0.125, 0.0, 0.0)}
    sweeper = told(lambda rate, seed, fold, until, split: course[until][rate - 1])
    swept = tune(sweeper, experiment_with(seeds=2), all_of(settings(4)), eta=2)
    assert [until for until, _, _ in sweeper.asked] == [2, 4, 8, 8]
    assert [[run[1] for run in runs[::2]] for _, _, runs in sweeper.asked] == [[1, 2, 3, 4], [2, 4], [2], [2]]
    assert results_of(swept) == [(1, 0.5, 2, False, None), (2, 0.125, 8, True, 0.125), (3, 0.25, 2, False, None),
                                 (4, 0.25, 4, False, None)]  # fmt: skip
    assert swept.budget == {"fedavg": {"settings": 4, "rounds x runs": (2 * 4 + 2 * 2 + 4 * 1) * 2}}


def test_halving_is_of_each_method_by_itself(told):
    both = [*settings(1), *settings(3, "local")]
    sweeper = told(lambda rate, *_: rate / 8)
    swept = tune(sweeper, experiment_with(("fedavg", "local")), all_of(both), eta=2)
    assert [until for until, _, _ in sweeper.asked] == [4, 8, 8]
    assert [run[:2] for run in sweeper.asked[1][2]] == [("fedavg", 1), ("local", 3)]
    assert [t.rounds for t in swept.tried] == [8, 4, 4, 8]


def test_in_folds_the_chosen_setting_is_trained_anew_on_all_training_data(told):
    def score(rate, seed, fold, until, split):
        return rate / 8 if fold is not None else None if seed == 1 else 0.5

    sweeper = told(score, Folds(BARE, 2), data=BARE)
    swept = tune(sweeper, experiment_with(seeds=2), all_of(settings(2)))
    assert sweeper.asked[0][2][:5] == [("fedavg", rate, seed, fold) for rate, seed, fold in
                                       ((1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1), (2, 0, 0))]  # fmt: skip
    assert sweeper.asked[1] == (8, ("test",), [("fedavg", 2, 0, None), ("fedavg", 2, 1, None)])
    assert swept.budget == {"fedavg": {"settings": 2, "rounds x runs": 8 * 2 * 2 * 2}}
    best = swept.tried[1]
    assert (best.chosen, best.validation.mean, best.test, best.rounds) == (True, 0.25, NONE, 8)
    assert best.failures == ("d/fedavg rate=0.2/seed1: why",)


def test_where_everything_diverges_nothing_is_chosen(told):
    swept = tune(told(lambda *_: None), experiment_with(), all_of(settings(2)), eta=2)
    assert isinstance(swept, Swept)
    assert swept.chosen == []
    assert [t.validation for t in swept.tried] == [NONE, NONE]


def test_a_list_of_settings_is_proposed_once():
    propose, given = all_of(settings(2)), settings(2)
    assert propose([]) == given
    assert propose([Tried(given[0], NONE, 0)]) == ()
