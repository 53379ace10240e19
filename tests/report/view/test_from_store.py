import pytest

from idiolect.report.view.from_store import (
    NO_MODELS,
    expected_runs,
    made_with,
    settings_of,
    statuses,
    verdict_sentence,
    view_of,
)
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.html.made import compared
from tests.report.stores import MACRO_F1, TRAINED, experiment, finished, start


def test_lines(toy):
    lines = made_with(toy)
    assert lines[:5] == [
        *("date: 2026-01-02", "git commit: 0123456789ab", "Python: 3.11.7", "idiolect: 0.1.0", "jax: 0.10.2")
    ]
    assert lines[5:] == ["machine: x86_64, device 1 x cpu"]  # nothing of the machine that writes the report


def test_what_differs_is_named(tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "fedavg"}], seeds=2)
    finished(store, exp, "cell0", "fedavg", 0, TRAINED, provenance={"git": None, "cores": 2, "memory_gb": 8})
    later = {"time": "2026-02-01T00:00:00+00:00", "python": "3.13.1", "cores": 64, "memory_gb": 256, "cpu": "Xeon"}
    later["git"] = {"commit": "f" * 40, "dirty": True}
    finished(store, exp, "cell0", "fedavg", 1, TRAINED, provenance=later)
    lines = made_with(Results(store, exp))
    assert lines[:3] == [
        "date: 2026-01-02 to 2026-02-01",
        "git commit: ffffffffffff with uncommitted changes",
        "Python: 3.11.7, 3.13.1",
    ]
    one, two = "x86_64, 2 cores, 8 GB memory, device 1 x cpu", "x86_64, Xeon, 64 cores, 256 GB memory, device 1 x cpu"
    assert lines[-1] == f"machine: {one}, {two}"


def test_only_the_experiments_runs(toy):
    assert [row.id for row in expected_runs(toy)] == [
        *("cell0/fedavg/seed0", "cell0/fedavg/seed1", "cell0/local/seed0", "cell0/local/seed1")
    ]
    fewer = toy.experiment.model_copy(update={"seeds": 1})
    assert [row.seed for row in expected_runs(Results(toy.store, fewer))] == [0, 0]


def test_nothing_run(tmp_path):
    assert made_with(Results(Store(tmp_path), experiment([{"name": "fedavg"}]))) == ["nothing was run yet"]


def test_settings_are_pairs_without_folders(toy):
    exp = experiment(
        [{"name": "local", "label": "mine"}], cells=[{"data": {"name": "mnist", "folder": "/home/x/data"}}]
    )
    label, data, rounds, method = (settings_of(exp.cells[0])[i] for i in (0, 1, 2, 3))
    assert (label, data) == (("data", "mnist"), ("model", "mlr"))
    assert rounds == ("", "20 rounds, all clients a round, evaluated every 10 rounds")
    assert method[0] == "mine"
    assert method[1].startswith("local (rate = ")


def test_what_is_told_in_words(tmp_path):
    results = compared(tmp_path, source="A paper", description="What\n was done.", protocol="as-written")
    whole = view_of(results, "idiolect compare")
    assert (whole.title, whole.source, whole.description) == ("A toy", "A paper", "What\n was done.")
    assert ("git commit", "0123456789ab") in whole.made_with
    part = whole.parts[0]
    assert part.settings[0] == ("data", "synthetic")
    assert part.audit == ("No leak found: none of 1,200 test samples has an exact copy in training data.",)
    assert [quantity.title for quantity in part.quantities] == ["test accuracy", "training loss", "test loss"]
    assert part.local == ("local", "local")
    assert part.shared == ("fedavg", "global")


def test_model_files_that_were_not_wanted_are_not_missing(tmp_path):
    """By default what they would show is missing; with --save-models none it is said where the run is described."""
    results = compared(tmp_path)
    lacks = "distances between"
    assert any(lacks in line for line in view_of(results, "").parts[0].missing)
    assert not any(label == "model files" for label, _ in view_of(results, "").made_with)
    results.store.set_fact("options", {"save_models": "none"})
    whole = view_of(results, "")
    assert not any(lacks in line or "confusion" in line for line in whole.parts[0].missing)
    assert ("model files", NO_MODELS) in whole.made_with


def test_a_view_of_nothing_run(tmp_path):
    whole = view_of(Results(Store(tmp_path), experiment([{"name": "fedavg"}])), "")
    assert whole.missing == ("Nothing was run yet: there are no scores to show.",)
    assert whole.made_with == (("", "nothing was run yet"),)
    assert whole.parts[0].clients == ()


def test_statuses(toy, cell):
    assert statuses(toy, cell, cell.methods[0]) == {"done": 1, "diverged": 1}
    assert statuses(toy, cell, cell.methods[2]) == {"not run": 2}


def test_verdicts_are_counted(tmp_path):
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
    assert {verdict: count for verdict, count in view_of(results).verdicts.items() if count} == {
        **{"close": 1, "differs": 1},
        **{"diverged": 1, "not run": 1},
    }
    told = "4 published values: 0 agree, 1 is close, 1 differs, 1 not run, 1 diverged."
    assert verdict_sentence(results) == told


def test_verdicts_of_macro_f1(tmp_path):
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


def test_one_verdict(toy):
    assert verdict_sentence(toy) == "1 published value: 0 agree, 1 is close, 0 differ."


def test_nothing_published(tmp_path):
    results = Results(Store(tmp_path), experiment([{"name": "local"}]))
    assert sum(view_of(results).verdicts.values()) == 0
    assert verdict_sentence(results) == ""
