"""Held-out clients of an experiment: they do not train, and are scored as new clients at its end."""

import math
from dataclasses import replace

import numpy as np
import pytest

import idiolect
from idiolect.core.errors import ConfigError
from idiolect.data.sets.registry import load
from idiolect.study.analyse.intervals import paired
from idiolect.study.analyse.results import Results
from idiolect.study.run.newcomers import NEW, new_lines, refusals
from idiolect.study.run.resolve import Workbench
from idiolect.study.store.store import Store
from tests.engine import DATA, experiment, run
from tests.report.stores import NAN, finished, record
from tests.report.stores import experiment as stored

METHODS = (
    {"name": "fedavg-ft", "finetune_steps": 3, "local_steps": 2, "batch_size": 5},
    {"name": "mocha", "relationship": "learned"},
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    exp = experiment(*METHODS, data={**DATA, "held_out": 0.4}, cohort=None, rounds=2)
    return run(exp, tmp_path_factory.mktemp("held") / "out")


@pytest.mark.second
def test_the_scores_are_those_of_run_personalize(results):
    data = load({**DATA, "held_out": 0.4})
    assert (data.num_clients, data.held_out.num_clients) == (3, 2)
    method = idiolect.FedAvgFineTuned(finetune_steps=3, local_steps=2, batch_size=5)
    made = idiolect.run(data, "mlr", method, rounds=2).personalize(data.held_out)
    for model in ("adapted", "global"):
        stored = results.store.scores("cell/fedavg-ft/seed0", 2, model, NEW)
        expected = made.scores(model)
        np.testing.assert_allclose(stored.loss, expected.loss, rtol=1e-6)
        np.testing.assert_array_equal(stored.count, data.held_out.test.sizes)
        assert stored.pooled["accuracy"] == pytest.approx(expected.pooled["accuracy"])
    known = results.store.scores("cell/fedavg-ft/seed0", 2, "adapted", "test")
    np.testing.assert_array_equal(known.count, data.test.sizes)


def test_a_method_that_refuses_new_clients_says_so_and_its_run_is_done(results):
    assert results.store.run("cell/mocha/seed0").status == "done"
    assert results.store.scores("cell/mocha/seed0", 2, "personal", NEW) is None
    assert "has no row for new clients" in results.store.fact(f"{NEW} cell/mocha/seed0")


def test_private_states_in_a_file_are_refused_before_anything_runs():
    exp = experiment(METHODS[0], data={**DATA, "held_out": 0.4}, cohort=None, private="file")
    with pytest.raises(ConfigError, match="held_out goes with one process and private = 'memory'"):
        Workbench().check(exp)


def test_a_comparison_needs_test_samples(three_clients):
    nothing = three_clients.test
    split = type(nothing)(nothing.x[:0], nothing.y[:0], nothing.offsets * 0, nothing.outputs)
    data = replace(three_clients, test=split)
    with pytest.raises(ConfigError, match="no test samples to compare methods on"):
        Workbench(data=data).check(experiment(METHODS[0]))


def test_seeds_with_splits_of_their_own_hold_out_the_same_clients(three_clients):
    (cell,) = experiment(METHODS[0], data={"name": "landmine", "held_out": 0.4}, new_splits=True).cells
    bench, specs = Workbench(), []
    bench.read = lambda spec: specs.append(spec) or three_clients  # pyright: ignore[reportAttributeAccessIssue]
    for seed in (0, 3):
        bench.load(cell, seed)
    assert [spec["split_seed"] for spec in specs] == [0, 3]
    assert [spec["held_out_seed"] for spec in specs] == [0, 0]


def test_the_gap_is_paired_by_seed_and_in_the_units_shown(tmp_path):
    """Means over the clients by hand: known .8, .7; new .5, .6; so -30 and -10 points."""
    store, exp = Store(tmp_path), stored([{"name": "fedavg"}, {"name": "mocha"}], seeds=2)
    for seed, known, new in ((0, (0.9, 0.7, 0.8, NAN), (0.4, 0.6)), (1, (0.7, 0.7, 0.7, NAN), (0.6, 0.6))):
        run = finished(store, exp, "cell0", "fedavg", seed, {20: {"global": known}})
        record(store, run, 20, {"global": new}, splits=(NEW,), counts=(3, 9))
    store.set_fact(f"{NEW} {finished(store, exp, 'cell0', 'mocha', 0, {20: {'personal': known}})}", "no row")
    results = Results(store, exp)
    cell = exp.cells[0]
    (line,) = new_lines(results, cell)
    assert (line.method, line.model) == ("fedavg", "global")
    assert (line.known.mean, line.new.mean) == (pytest.approx(0.75), pytest.approx(0.55))
    assert line.mean == pytest.approx(-20)
    expected = paired([50, 60], [80, 70], resolution=100 / (2 * 3))  # of two new clients one has three samples
    assert expected.high - expected.mean > 1.1 * (paired([50, 60], [80, 70]).high + 20)
    assert (line.gap.low, line.gap.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert refusals(results, cell) == {"mocha": "no row"}


def test_one_seed_has_a_gap_without_an_interval_and_a_value_that_is_missing_none(tmp_path):
    store, exp = Store(tmp_path), stored([{"name": "fedavg"}, {"name": "local"}], seeds=1)
    run = finished(store, exp, "cell0", "fedavg", 0, {20: {"global": (0.5, 0.5, 0.5, NAN)}})
    record(store, run, 20, {"global": (0.6, 0.8)}, splits=(NEW,), counts=(3, 9))
    finished(store, exp, "cell0", "local", 0, {20: {"local": (0.5, 0.5, 0.5, NAN)}})
    (line,) = new_lines(Results(store, exp), exp.cells[0])
    assert (line.gap, line.mean) == (None, pytest.approx(20))
    assert math.isnan(line.new.std)
