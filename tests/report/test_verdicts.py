from idiolect.report.verdicts import verdict_sentence, verdict_summary
from idiolect.results import Results
from idiolect.store import Store
from tests.report.stores import TRAINED, experiment, finished, start


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
    assert verdict_summary(results) == {"reproduced": 1, "differs": 1, "diverged": 1, "not run": 1}
    assert verdict_sentence(results) == "4 published values: 1 reproduced, 1 differ, 1 diverged, 1 not run."


def test_one(toy):
    assert verdict_sentence(toy) == "1 published value: 1 reproduced, 0 differ."


def test_nothing_published(tmp_path):
    results = Results(Store(tmp_path), experiment([{"name": "local"}]))
    assert sum(verdict_summary(results).values()) == 0
    assert verdict_sentence(results) == ""
