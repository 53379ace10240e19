"""What an experiment's cells become: runs that fit their data, notes on them, and cohorts in common."""

import os
from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

from idiolect.client.client import Together
from idiolect.core.errors import ConfigError
from idiolect.core.handing import Handed
from idiolect.data.files.folder import save_data
from idiolect.data.sets import registry as sources
from idiolect.runtime import simulate
from idiolect.runtime.devices import Devices
from idiolect.study.analyse.results import Results
from idiolect.study.run.resolve import Workbench, check_new_splits
from idiolect.study.store.store import Store
from tests.engine import DATA, FEDAVG, LOCAL, experiment
from tests.federations import classification


def test_a_published_macro_f1_needs_classes_in_common():
    data, spec = (
        classification().data,
        experiment(
            {**LOCAL, "published": [{"model": "local", "value": 50.0, "metric": "macro-f1"}]}, splits=["test"]
        ),
    )
    own = {name: replace(data.split(name), outputs=np.full(5, 3)) for name in ("train", "validation", "test")}
    assert len(Workbench(data=data).check(spec)) == 1
    with pytest.raises(ConfigError, match=r"cell 'cell': local: a published macro-f1 .* leave metric out"):
        Workbench(data=replace(data, **own)).check(spec)


def test_small_batches_are_said(tmp_path):
    fits, many = {**FEDAVG, "batch_size": 5}, {**LOCAL, "batch_size": 30}
    bench, spec = Workbench(), experiment(fits, many)
    few, small = (row.provenance["notes"] for row in bench.check(spec))
    sizes = bench.load(spec.cells[0]).train.sizes
    assert 5 < sizes.max() < 30
    assert [note for note in small if note not in few] == [
        f"batch_size = 30 is larger than the training data of 5 of 5 clients (the smallest has {min(sizes)}): "
        "their mini-batches hold all the samples that they have"
    ]
    store = Store(tmp_path)
    for row in bench.check(spec):
        store.start(row)
        store.finish(row.id, "done")
    assert Results(store, spec).notes(spec.cells[0]) == small


def test_a_model_without_a_body_is_said_of_a_method_that_shares_one():
    (row,) = Workbench().check(experiment({"name": "fedper"}))
    assert any("this is local training" in note for note in row.provenance["notes"])


def test_devices_that_compute_a_client_together_are_said(monkeypatch):
    several = Devices()
    several.together = Together("rows", 3, 1)
    monkeypatch.setattr(simulate, "devices_for", lambda *_: several)
    monkeypatch.setattr(jax, "device_count", lambda: 3)
    bench, spec = Workbench(), experiment(FEDAVG)
    (row,) = bench.check(spec)
    assert row.provenance["notes"][-1] == (
        "fedavg: 3 devices computed the gradients of one client together. "
        "One device gives the same results up to rounding."
    )
    cell = spec.cells[0]
    data = bench.load(cell)
    assert row.provenance["notes"][:-1] == bench.row(cell, cell.methods[0], data, 0, False).provenance["notes"]


def test_cohorts_are_the_same_for_every_method_with_one_seed():
    spec, bench = experiment(FEDAVG, LOCAL), Workbench()
    cell = spec.cells[0]
    data = bench.load(cell)
    drawn = []
    for method in cell.methods:
        simulation = bench.simulation(cell, method, bench.problem(cell, data))
        seed = simulation.init(3).seed
        drawn.append([simulation.sampling.draw(seed, t, 2)[0].tolist() for t in range(6)])
    assert drawn[0] == drawn[1]
    assert len({tuple(ids) for ids in drawn[0]}) > 1


def test_with_new_splits_each_seed_draws_its_own_samples_and_the_rest_stays():
    once, anew = (experiment(LOCAL, seeds=2, new_splits=new, splits=["test"]) for new in (False, True))
    bench = Workbench()
    first, second = (bench.load(anew.cells[0], seed) for seed in (0, 1))
    assert first.fingerprint == bench.load(once.cells[0], 1).fingerprint
    assert first.fingerprint != second.fingerprint
    assert first.clients == second.clients
    named = experiment(LOCAL, data={**DATA, "split_seed": 1}).cells[0]
    assert second.fingerprint == bench.load(named).fingerprint
    assert [row.data_hash for row in bench.check(anew)] == [first.fingerprint, second.fingerprint]
    moved = experiment(LOCAL, data={**DATA, "split_seed": 1}, new_splits=True).cells[0]
    assert (
        bench.load(moved, 4).fingerprint
        == bench.load(experiment(LOCAL, data={**DATA, "split_seed": 5}).cells[0]).fingerprint
    )


def test_new_splits_need_data_with_a_split_and_the_same_clients(monkeypatch):
    with pytest.raises(ConfigError, match="new_splits needs data with a split_seed; data made in Python have none"):
        Workbench(data=classification().data).check(experiment(LOCAL, new_splits=True))
    folder = {"name": "encoded", "path": "houses.data"}
    with pytest.raises(ConfigError, match=r"'houses\.data' were split when they were encoded; .*--seeds"):
        Workbench().check(experiment(LOCAL, data=folder, new_splits=True))
    with pytest.raises(ConfigError, match="'synthetic-population' have none"):
        Workbench().check(experiment(LOCAL, data={"name": "synthetic-population"}, new_splits=True))
    check_new_splits(experiment(LOCAL, data={"name": "mnist"}, new_splits=True).cells[0], None)
    bench, spec = Workbench(), experiment(LOCAL, seeds=3, new_splits=True, splits=["test"])
    load = bench.load
    monkeypatch.setattr(
        bench,
        "load",
        lambda cell, seed=0: replace(load(cell, seed), clients=(f"new {seed // 2}", "b", "c", "d", "e")),
    )
    with pytest.raises(ConfigError, match="with seed 2 the split has other clients than with seed 0"):
        bench.check(spec)


def test_new_splits_that_are_all_the_same_are_refused(monkeypatch):
    """As windows that are divided by time are: no seed draws them."""
    bench, spec = Workbench(), experiment(LOCAL, seeds=2, new_splits=True, splits=["test"])
    load = bench.load
    monkeypatch.setattr(bench, "load", lambda cell, seed=0: load(cell, 0))
    with pytest.raises(ConfigError, match="split_seed changes nothing: these data are not divided at random"):
        bench.check(spec)
    assert len(bench.check(spec.model_copy(update={"seeds": 1}))) == 1


def test_the_user_s_own_model_must_fit_the_data():
    bench = Workbench(data=classification().data, model=eqx.nn.Linear(4, 3, key=jax.random.key(0)))
    with pytest.raises(ConfigError, match=r"cell 'cell': Linear cannot take one sample of shape \(3,\)"):
        bench.check(experiment(FEDAVG))


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="only Linux shares memory so")
def test_data_that_were_read_once_are_taken_by_other_workbenches(monkeypatch):
    spec = experiment(FEDAVG, seeds=2)
    first, second = Workbench(), Workbench()
    own = first.load(spec.cells[0])
    with first.giving(spec) as handed:
        second.take(handed)
        second.take(handed)
    monkeypatch.setattr(sources, "load", lambda _: pytest.fail("read again"))
    taken = second.load(spec.cells[0], 1)
    assert taken.fingerprint == own.fingerprint
    np.testing.assert_array_equal(taken.train.x, own.train.x)
    assert not taken.train.x.flags.writeable
    with pytest.raises(pytest.fail.Exception, match="read again"):  # it has given its own copy away
        first.load(spec.cells[0])


def test_data_that_some_runs_do_not_use_are_not_given():
    spec = experiment(FEDAVG, seeds=2)
    other = spec.cells[0].model_copy(update={"id": "other", "data": {**DATA, "clients": 6}})
    anew = experiment(FEDAVG, seeds=2, new_splits=True)
    for changed in (spec.model_copy(update={"cells": (*spec.cells, other)}), anew):
        bench = Workbench()
        bench.load(changed.cells[0], 0)
        with bench.giving(changed) as handed:
            assert handed is None


def test_data_that_are_mapped_from_a_file_are_not_copied(tmp_path):
    save_data(Workbench().load(experiment(FEDAVG).cells[0]), tmp_path / "folder")
    spec = experiment(FEDAVG, data={"name": "encoded", "path": str(tmp_path / "folder")})
    bench = Workbench()
    bench.load(spec.cells[0])
    with bench.giving(spec) as handed:
        assert handed is None


def test_what_cannot_be_taken_is_read():
    bench = Workbench()
    bench.take(Handed("/no/such/place", b"", ()))
    bench.take(None)
    assert bench.load(experiment(FEDAVG).cells[0]).num_clients > 0
