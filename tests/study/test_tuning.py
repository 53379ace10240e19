"""Which setting validation data choose: of stores written by hand, in which test data say the opposite."""

import pytest

from idiolect.study.results import Results
from idiolect.study.store import Store
from idiolect.study.tuning import chosen, validation_score
from tests.report.stores import experiment, record, start

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


def test_what_was_not_run_is_not_chosen(tmp_path):
    results, cell = tuned(tmp_path)
    assert validation_score(results, cell, cell.method("local"), "local").seeds == 0
    assert "local" not in [pick.method for pick in chosen(results, cell)]
