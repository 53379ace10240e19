import pytest

from idiolect.report.verdicts import verdict_sentence, verdict_summary
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.stores import MACRO_F1, TRAINED, experiment, finished, start


def test_counts(tmp_path):
    store = Store(tmp_path)
    values = {"near": 72.0, "far": 60.0, "broken": 70.0, "absent": 70.0}
    methods = [
        {"name": "fedavg", "label": label, "published": ({"model": "global", "value": value, "within": 1.0},)}
        for label, value in values.items()
    ]
    exp = experiment([*methods, {"name": "local"}], seeds=1)
    for label in ("near", "far"):
        finished(store, exp, "cell0", label, 0, TRAINED)
    store.finish(start(store, exp, "cell0", "broken", 0), "diverged", "NaN")
    results = Results(store, exp)
    assert {verdict: count for verdict, count in verdict_summary(results).items() if count} == {
        **{"close": 1, "differs": 1},
        **{"diverged": 1, "not run": 1},
    }
    told = "4 published values: 0 agree, 1 is close, 1 differs, 1 not run, 1 diverged."
    assert verdict_sentence(results) == told


def test_of_macro_f1(tmp_path):
    """The same runs: 72.5 % of the samples are right, and macro-F1 is 53.33 %; one seed has none."""
    store = Store(tmp_path)
    values = {"accuracy": (72.0, ""), "as f1": (72.0, "macro-f1"), "f1": (54.0, "macro-f1")}
    methods = [
        {"name": "fedavg", "label": label, "published": ({"model": "global", "value": value, "metric": metric},)}
        for label, (value, metric) in {**values, "old": (54.0, "macro-f1")}.items()
    ]
    exp = experiment(methods, seeds=2)
    for label in values:
        for seed in (0, 1):
            finished(store, exp, "cell0", label, seed, TRAINED, macro_f1=MACRO_F1)
    finished(store, exp, "cell0", "old", 0, TRAINED, macro_f1=MACRO_F1)
    finished(store, exp, "cell0", "old", 1, TRAINED)
    results = Results(store, exp)
    assert [line.verdict for line in results.lines] == ["close", "differs", "close", "not measured"]
    expected = [0.5, 100 * MACRO_F1 - 72, 100 * MACRO_F1 - 54]
    assert [line.difference for line in results.lines[:3]] == pytest.approx(expected)
    assert results.lines[3].difference is None
    assert verdict_sentence(results) == "4 published values: 0 agree, 2 are close, 1 differs, 1 not measured."


def test_one(toy):
    assert verdict_sentence(toy) == "1 published value: 0 agree, 1 is close, 0 differ."


def test_nothing_published(tmp_path):
    results = Results(Store(tmp_path), experiment([{"name": "local"}]))
    assert sum(verdict_summary(results).values()) == 0
    assert verdict_sentence(results) == ""
