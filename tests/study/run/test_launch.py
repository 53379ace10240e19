import os

import pytest

from idiolect.core.errors import ConfigError, DataError, DivergedError, StoreError
from idiolect.report.launch import launch
from idiolect.study.run.launch import raise_diverged, stored_options
from idiolect.study.run.resolve import Workbench
from idiolect.study.store.store import Store
from tests.engine import DATA, LOCAL, experiment, run


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"cohort": 6}, "cell 'cell': cohort = 6.0 is larger than the 5 clients"),
        ({"cohort": 1.5}, "cohort = 1.5 must be a whole number"),
        ({"data": {**DATA, "clinets": 3}}, "unknown key of data set 'synthetic' 'clinets'; did you mean 'clients'"),
        ({"data": {**DATA, "clients": 0}}, "clients must be at least 1"),
        ({"data": "sythetic"}, "unknown data set 'sythetic'; did you mean 'synthetic'"),
        ({"data": {"name": "table", "path": "absent.csv"}}, r"absent\.csv"),
        ({"model": "mlpp"}, "unknown model 'mlpp'; did you mean 'mlp'"),
        ({"model": {"name": "mlr", "l3": 1}}, "'l3'; did you mean 'l2'"),
        ({"model": "linear"}, "model linear is for regression, but the labels are for classification"),
        (
            {"data": {"name": "synthetic", "clients": 3, "max_size": 20}, "select": "best-validation"},
            "data.validation",
        ),
    ],
)
def test_what_can_be_known_to_be_wrong_is_refused_before_the_folder_is_created(tmp_path, changes, match):
    with pytest.raises((ConfigError, DataError), match=match) as caught:
        run(experiment(LOCAL, **changes), tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_folder_has_one_master(tmp_path):
    store = Store(tmp_path / "out")
    fcntl = pytest.importorskip("fcntl")
    with open(store.folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match="another idiolect process works in"):
            run(experiment(LOCAL), store.folder)
    assert store.fact("experiment") is None


def test_options_are_kept_for_resume(tmp_path):
    store, spec = Store(tmp_path / "out"), experiment(LOCAL)
    before = {"folder": None, "save_models": "first", "command": "", "jobs": None, "started_in": None}
    assert stored_options(store) == before
    for row in Workbench().check(spec):
        store.start(row)
        store.finish(row.id, "diverged", "why")
    results = launch(
        spec,
        store.folder,
        folder=os.path.relpath(tmp_path),
        save_models="none",
        command="c",
        quiet=True,
        figures=False,
    )
    after = {
        "folder": str(tmp_path),
        "save_models": "none",
        "command": "c",
        "jobs": None,
        "started_in": str(store.folder),
    }
    assert stored_options(store) == after
    with pytest.raises(DivergedError, match="cell/local/seed0: why"):
        raise_diverged(results)


@pytest.mark.parametrize(("first", "then", "processes"), [(None, None, 2), (1, None, 1), (1, 2, 2), (2, None, 2)])
def test_the_last_run_left_has_as_many_cores_as_it_would_have_had(tmp_path, monkeypatch, first, then, processes):
    # A run's last bits depend on its number of devices: one process for both runs has all cores, two have half each.
    spec, started = experiment(LOCAL, seeds=2), []
    monkeypatch.setattr("idiolect.study.run.launch.default_jobs", lambda: 2)
    monkeypatch.setattr("idiolect.study.run.launch.run_serial", lambda *_: started.append(1))
    monkeypatch.setattr("idiolect.study.run.launch.run_parallel", lambda *_, jobs, **__: started.append(jobs))
    store = Store(tmp_path / "out")
    launch(spec, store.folder, jobs=first, quiet=True, figures=False)
    row = Workbench().check(spec)[0]
    store.start(row)
    store.finish(row.id, "diverged", "why")
    launch(spec, store.folder, jobs=then, quiet=True, figures=False)
    assert started == [first or 2, processes]
