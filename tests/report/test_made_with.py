from idiolect.report.made_with import expected_runs, made_with
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.stores import TRAINED, experiment, finished


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
