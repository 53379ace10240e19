"""Results of stores written by hand: which round counts, against whom a client is hurt, what a gap is paired by."""

import math

import numpy as np
import pytest

from idiolect.runtime.evaluate import ClientScores
from idiolect.study.analyse.pairs import pairs_of, reference_of
from idiolect.study.analyse.results import Results, chosen, mean_scores, validation_score, worst_of
from idiolect.study.store.store import Store
from tests.report.stores import NAN, PUBLISHED, experiment, finished, record, start, toy

FOUR = (1, 1, 1, 1)


def course(values, **more):
    """round -> one score of four clients."""
    return {round: {"global": (value,) * 4} for round, value in values.items()}


def selected(folder, select, validation, test, task="classification", protocol="as-written", metric=""):
    cell = {"select": select, "splits": ["validation", "test"], "metric": metric}
    store, exp = Store(folder), experiment([{"name": "fedavg"}], seeds=1, cells=[cell], protocol=protocol)
    run = start(store, exp, "cell0", "fedavg", 0, task=task)
    for split, values in (("validation", validation), ("test", test)):
        for round, value in values.items():
            accuracy, f1 = value if isinstance(value, tuple) else (value, NAN)
            more = {"splits": (split,), "counts": FOUR, "task": task, "macro_f1": f1}
            record(store, run, round, {"global": (accuracy,) * 4}, **more)
    store.finish(run, "done")
    results = Results(store, exp)
    return results, results.selected(exp.cells[0], results.rows[run], "global")


@pytest.mark.parametrize(
    ("select", "protocol", "task", "round"),
    [
        ("last", "as-written", "classification", 40),
        ("best-validation", "as-written", "classification", 20),  # the first of equals
        ("best-validation", "as-written", "regression", 10),
        ("best-test", "as-published", "classification", 10),
        ("best-test", "as-published", "regression", 20),
    ],
)
def test_the_round_that_counts(tmp_path, select, protocol, task, round):
    validation, test = {10: 0.5, 20: 0.7, 30: 0.7, 40: 0.6}, {10: 0.9, 20: 0.2, 30: 0.8, 40: 0.3}
    _, (found, scores) = selected(tmp_path, select, validation, test, task, protocol)
    assert found == round
    assert scores.split == "test"
    assert scores.pooled["accuracy" if task == "classification" else "mse"] == pytest.approx(test[round])


def test_the_chosen_metric_chooses_the_round_and_a_round_without_a_value_is_never_chosen(tmp_path):
    validation = {0: (0.9, NAN), 10: (0.5, 0.4), 20: (0.7, 0.3), 30: (0.6, NAN)}
    test = dict.fromkeys(validation, (0.5, 0.5))
    results, (found, _) = selected(tmp_path, "best-validation", validation, test, metric="macro-f1")
    assert found == 10
    (line,) = results.lines
    assert (line.metric, line.pooled.mean, list(line.metrics)) == ("macro-f1", 0.5, ["macro-f1", "accuracy"])
    assert math.isnan(line.mean.mean)  # these clients have no macro-F1 of their own


def test_no_evaluation_is_no_selection(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "fedavg"}], seeds=1)
    run = start(store, exp, "cell0", "fedavg", 0)
    store.finish(run, "done")
    results = Results(store, exp)
    assert results.selected(exp.cells[0], results.rows[run], "global") is None
    assert results.lines[0].pooled.seeds == 0


def test_a_mean_over_rounds_is_of_every_number():
    def scores(loss, accuracy, pooled):
        values = {"accuracy": np.array([accuracy, NAN])}
        return ClientScores("m", "test", np.array([3, 0]), np.array([loss, NAN]), values, {"accuracy": pooled})

    found = mean_scores([scores(1.0, 0.2, 0.1), scores(2.0, 0.4, 0.5), scores(6.0, 0.9, 0.3)])
    assert (found.loss[0], found.values["accuracy"][0]) == (3.0, pytest.approx(0.5))
    assert found.pooled["accuracy"] == pytest.approx(0.3)
    assert np.isnan(found.values["accuracy"][1])


def test_a_model_may_have_several_published_values_and_incomplete_data_reproduce_none(tmp_path):
    values = [{"model": "global", "value": 70.0, "within": 5.0}, {"model": "global", "value": 1.3, "metric": "loss"}]
    store, exp = Store(tmp_path), experiment([{"name": "fedavg", "published": values}], seeds=1)
    finished(store, exp, "cell0", "fedavg", 0, {20: {"global": (0.7, 0.7, 0.7, NAN)}})
    results = Results(store, exp)
    (line,), (second,) = results.lines, results.further
    assert (line.published_metric, line.verdict, line.difference) == ("accuracy", "close", pytest.approx(0))
    assert (second.published_metric, second.verdict, second.difference) == ("loss", "close", pytest.approx(0))
    store = Store(tmp_path / "part")
    notes = {"notes": ["a leak", "incomplete: one batch of five", "incomplete: no test part"]}
    finished(store, exp, "cell0", "fedavg", 0, {20: {"global": (0.7, 0.7, 0.7, NAN)}}, provenance=notes)
    results = Results(store, exp)
    for line in (*results.lines, *results.further):
        assert (line.verdict, line.published.other_data) == ("other data", "one batch of five; no test part")


def test_hurt_is_against_local_and_fedavg_of_the_same_seed(tmp_path):
    """Local is better for one client of three with seed 0, for two with seed 1; FedAvg for all, then none."""
    store = Store(tmp_path)
    exp = experiment([{"name": "pfedme"}, {"name": "local"}, {"name": "fedavg"}])
    personal = (0.5, 0.5, 0.5, NAN)
    for seed, alone, shared in ((0, (0.6, 0.5, 0.4, NAN), (0.9,) * 4), (1, (0.6, 0.6, 0.5, NAN), (0.5,) * 4)):
        finished(store, exp, "cell0", "pfedme", seed, {20: {"personal": personal, "global": (0.1,) * 4}})
        finished(store, exp, "cell0", "local", seed, {20: {"local": alone}})
        finished(store, exp, "cell0", "fedavg", seed, {20: {"global": shared}})
    lines = {(line.method, line.model): line for line in Results(store, exp).lines}
    line = lines["pfedme", "personal"]
    assert line.hurt_local.mean == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert line.hurt_global.mean == pytest.approx(0.5)
    assert lines["local", "local"].hurt_local.mean == 0


def test_without_fedavg_hurt_is_against_the_methods_own_global_model(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "pfedme"}], seeds=1)
    rounds = {20: {"personal": (0.5, 0.5, 0.5, NAN), "global": (0.6, 0.5, 0.4, NAN)}}
    finished(store, exp, "cell0", "pfedme", 0, rounds)
    line = Results(store, exp).lines[0]
    assert (line.model, line.hurt_local) == ("personal", None)
    assert line.hurt_global.mean == pytest.approx(1 / 3)


def test_a_line_is_over_the_seeds_that_have_finished(tmp_path):
    fedavg, alone, personal, _, other = toy(tmp_path).lines
    assert (fedavg.pooled.seeds, fedavg.failed, fedavg.rounds) == (1, 1, (20,))
    assert fedavg.pooled.mean == pytest.approx((10 * 0.7 + 10 * 0.7 + 20 * 0.75) / 40)
    assert fedavg.published.value == PUBLISHED[0]["value"]
    assert (alone.pooled.seeds, alone.rounds) == (2, (20, 20))
    assert alone.mean.mean == pytest.approx(np.mean([(0.9 + 0.6 + 0.8) / 3, (0.9 + 0.6 + 0.9) / 3]))
    assert alone.pooled.mean == pytest.approx(np.mean([(9 + 6 + 16) / 40, (9 + 6 + 18) / 40]))
    assert alone.worst10.mean == alone.worst.mean == pytest.approx(0.6)
    assert alone.metrics["accuracy"] == alone.pooled
    assert personal.pooled.seeds == other.pooled.seeds == 0


def test_a_gap_is_paired_by_seed(tmp_path):
    """Seed 0 has both, seed 1 only one of the two: the gap is 20 points, not a difference of means."""
    store = Store(tmp_path)
    gap = {"larger": "fedavg/global", "smaller": "local/local", "value": 20.0}
    exp = experiment([{"name": "fedavg"}, {"name": "local"}], cells=[{"gaps": [gap]}])
    finished(store, exp, "cell0", "fedavg", 0, {20: {"global": (0.7,) * 4}})
    finished(store, exp, "cell0", "fedavg", 1, {20: {"global": (0.1,) * 4}})
    finished(store, exp, "cell0", "local", 0, {20: {"local": (0.5,) * 4}})
    results = Results(store, exp)
    (found,) = results.gaps(exp.cells[0])
    assert (found.measured.mean, found.measured.seeds) == (pytest.approx(20), 1)
    assert found.verdict == "close"  # a single pair


def test_a_gap_of_a_regression_is_in_its_own_units(tmp_path):
    store = Store(tmp_path)
    gap = {"larger": "fedavg/global", "smaller": "local/local", "value": 0.2}
    exp = experiment([{"name": "fedavg"}, {"name": "local"}], seeds=1, cells=[{"gaps": [gap]}])
    for method, model, mse in (("fedavg", "global", 0.7), ("local", "local", 0.5)):
        finished(store, exp, "cell0", method, 0, {20: {model: (mse,) * 4}}, task="regression")
    (found,) = Results(store, exp).gaps(exp.cells[0])
    assert found.measured.mean == pytest.approx(0.2)


def test_curves_have_the_spread_over_seeds(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "fedavg"}, {"name": "local"}])
    finished(store, exp, "cell0", "fedavg", 0, course({0: 0.1, 20: 0.5}))
    finished(store, exp, "cell0", "fedavg", 1, course({0: 0.1, 20: 0.7}))
    results = Results(store, exp)
    (curve,) = results.curves(exp.cells[0], "test")
    assert (curve.method, curve.model, curve.rounds.tolist()) == ("fedavg", "global", [0, 20])
    assert curve.score.tolist() == pytest.approx([0.1, 0.6])
    assert curve.score_ci95.tolist() == pytest.approx(
        [0, 12.7062 * 0.1], rel=1e-5
    )  # Student's t, one degree of freedom
    assert curve.loss.tolist() == pytest.approx([1.9, 1.4])
    assert results.curves(exp.cells[0], "test", ["personal"]) == []


def test_which_runs_are_where(tmp_path):
    results = toy(tmp_path)
    start(results.store, results.experiment, "cell0", "pfedme", 0)
    results = Results(results.store, results.experiment)
    assert [row.id for row in results.diverged()] == ["cell0/fedavg/seed1"]
    assert [row.id for row in results.unfinished()] == ["cell0/pfedme/seed0"]
    assert len(results.started()) == 5
    cell = results.experiment.cells[0]
    assert results.clients(cell) == ["north", "south", "east", "west"]
    assert results.notes(cell) == ["the toy data leak on purpose"]
    assert results.notes(cell.model_copy(update={"note": "made data"})) == [
        "made data",
        "the toy data leak on purpose",
    ]
    assert results.round_seconds(cell, cell.method("fedavg")).mean == pytest.approx(1.25 / 20)


RATES = ("low", "middle", "high")


def tuned(folder, task="classification", metric="", values=(0.5, 0.7, 0.6), methods=("fedavg",), f1=(0.3, 0.1, 0.2)):
    """Each setting's validation score, first in round 10 and lower, then in round 20; test is 1 minus that."""
    spec = [{"name": name, "label": f"{name} {rate}"} for name in methods for rate in RATES]
    cell = {"tune": True, "splits": ["validation", "test"], "metric": metric}
    store, exp = Store(folder), experiment([*spec, {"name": "local"}], cells=[cell])
    for name in methods:
        for rate, value, score in zip(RATES, values, f1, strict=True):
            for seed in (0, 1):
                run = start(store, exp, "cell0", f"{name} {rate}", seed, task=task)
                for round, step in ((10, 0.4), (20, 0.0)):
                    now = value + 0.02 * seed
                    for split, shown in (("validation", now + (step if rate == "low" else 0)), ("test", 1 - now)):
                        more = {"splits": (split,), "task": task, "macro_f1": score}
                        record(store, run, round, {"global": (shown,) * 4}, **more)
                store.finish(run, "done")
    return Results(store, exp), exp.cells[0]


def test_the_best_by_validation_in_the_last_round(tmp_path):
    (pick,) = chosen(*tuned(tmp_path))
    assert (pick.method, pick.line.method, pick.tried) == ("fedavg", "fedavg middle", 3)
    assert (pick.validation.mean, pick.validation.seeds) == (pytest.approx(0.71), 2)
    assert pick.line.pooled.mean == pytest.approx(0.29)


def test_of_an_error_the_lowest(tmp_path):
    (pick,) = chosen(*tuned(tmp_path, task="regression"))
    assert pick.line.method == "fedavg low"


def test_of_equals_the_one_that_was_named_first(tmp_path):
    (pick,) = chosen(*tuned(tmp_path, values=(0.5, 0.7, 0.7)))
    assert pick.line.method == "fedavg middle"


def test_each_method_has_its_own(tmp_path):
    picks = chosen(*tuned(tmp_path, methods=("fedavg", "fedprox")))
    assert [(pick.method, pick.line.method) for pick in picks] == [
        ("fedavg", "fedavg middle"),
        ("fedprox", "fedprox middle"),
    ]


def test_the_chosen_metric_chooses(tmp_path):
    (pick,) = chosen(*tuned(tmp_path, metric="macro-f1"))
    assert (pick.line.method, pick.line.metric) == ("fedavg low", "macro-f1")
    assert pick.validation.mean == pytest.approx(0.3)


def local_in_two_settings(folder, select="last"):
    """Local training in two settings: the second has the better validation score; and FedAvg between them on test.

    At round 10 the first one's validation score is the best of all, so that the best round turns the choice round.
    """
    methods = [{"name": "local", "label": "slow"}, {"name": "local", "label": "fast"}, {"name": "fedavg"}]
    cell = {"tune": True, "splits": ["validation", "test"], "select": select}
    store, exp = Store(folder), experiment(methods, cells=[cell])
    for title, model, validation, test in (
        ("slow", "local", (0.9, 0.5), (0.3, 0.55)),
        ("fast", "local", (0.2, 0.8), (0.2, 0.8)),
        ("fedavg", "global", (0.6, 0.6), (0.6, 0.6)),
    ):
        for seed in (0, 1):
            run = start(store, exp, "cell0", title, seed)
            for round, *shown in zip((10, 20), validation, test, strict=True):
                for split, value in zip(("validation", "test"), shown, strict=True):
                    record(store, run, round, {model: (value + seed / 50,) * 4}, splits=(split,))
            store.finish(run, "done")
    return Results(store, exp), exp.cells[0]


def test_others_are_compared_with_the_chosen_setting_of_local_training(tmp_path):
    """Not with the first one that was tried: FedAvg's gain over that one says nothing."""
    results, cell = local_in_two_settings(tmp_path)
    assert results.best(cell)["local"].title == "fast"
    assert [method.title for method in results.standing(cell, "local")] == ["fast"]
    assert reference_of(results, cell) == ("fast", "local")
    values = results.reference(cell, ("local",), "local", 0)
    assert values is not None
    assert values.tolist() == pytest.approx([0.8] * 4)
    assert results.line(cell, cell.method("fedavg"), "global").hurt_local.mean == 1.0
    assert [(pair.method, pair.model) for pair in pairs_of(results, cell)] == [("fedavg", "global")]
    drawn = cell.model_copy(update={"methods": tuple(m for m in cell.methods if m.title != "fast")})
    assert results.best(drawn)["local"].title == "fast"  # what is drawn chooses nothing
    untuned = cell.model_copy(update={"tune": False})
    plain = Results(results.store, results.experiment.model_copy(update={"cells": (untuned,)}))
    assert reference_of(plain, plain.experiment.cells[0]) == ("slow", "local")


def test_the_best_round_chooses_where_the_table_shows_it(tmp_path):
    results, cell = local_in_two_settings(tmp_path, select="best-validation")
    assert results.best(cell)["local"].title == "slow"
    assert results.best(cell)["local"].validation.mean == pytest.approx(0.91)
    (pick,) = [one for one in chosen(results, cell) if one.method == "local"]
    assert pick.line.pooled.mean == pytest.approx(0.31)


def test_what_was_not_run_is_not_chosen(tmp_path):
    results, cell = tuned(tmp_path)
    assert validation_score(results, cell, cell.method("local"), "local").seeds == 0
    assert "local" not in [pick.method for pick in chosen(results, cell)]


def test_findings_of_several_divisions_are_said_once():
    """Of those that differ only in numbers the largest; a column's name is no number."""
    first = [
        "4,049 samples, 3,141 of them distinct.",
        "218 of 833 test samples (26.2%) have a copy.",
        "Column 'x1' leaks.",
    ]
    second = [
        "4,049 samples, 3,141 of them distinct.",
        "1,248 of 833 test samples (9.2%) have a copy.",
        "Column 'x2' leaks.",
    ]
    assert worst_of([first]) == first
    assert worst_of([first, second, second]) == [
        first[0],
        "1,248 of 833 test samples (9.2%) have a copy. (The most of 3 divisions.)",
        "Column 'x1' leaks.",
        "Column 'x2' leaks.",
    ]
    assert worst_of([["Column '1' leaks."], ["Column '2' leaks."]]) == ["Column '1' leaks.", "Column '2' leaks."]
    assert worst_of([]) == []
