"""Held-out clients of an experiment: they do not train, and are scored as new clients at its end."""

from dataclasses import replace

import numpy as np
import pytest

import idiolect
from idiolect.core.errors import ConfigError
from idiolect.data.sets.registry import load
from idiolect.study.held_out import NEW
from idiolect.study.resolve import Workbench
from tests.engine import DATA, experiment, run

METHODS = (
    {"name": "fedavg-ft", "finetune_steps": 3, "local_steps": 2, "batch_size": 5},
    {"name": "mocha", "relationship": "learned"},
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    exp = experiment(*METHODS, data={**DATA, "held_out": 0.4}, cohort=None, rounds=2)
    return run(exp, tmp_path_factory.mktemp("held") / "out")


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
    assert "says nothing of new clients" in results.store.fact(f"{NEW} cell/mocha/seed0")


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
