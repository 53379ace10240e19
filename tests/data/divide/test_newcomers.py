from dataclasses import replace

import numpy as np
import pytest

import idiolect
from idiolect.core.errors import DataError
from idiolect.data import SPLITS, mosi
from idiolect.data.divide.newcomers import assign_evenly, note_on_newcomers
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.simulate import Simulation
from tests.data.mosi_data import write_mosi


def test_each_row_goes_to_one_client_in_even_shares():
    rows = np.arange(100, 147)
    shares = assign_evenly(rows, 5, 0)
    np.testing.assert_array_equal(np.sort(np.concatenate(shares)), rows)
    assert sorted(map(len, shares)) == [9, 9, 9, 10, 10]
    assert all(np.array_equal(a, b) for a, b in zip(shares, assign_evenly(rows, 5, 0), strict=True))
    assert not np.array_equal(shares[0], assign_evenly(rows, 5, 1)[0])


def test_shares_are_drawn_at_random():
    """The mean of a share's row numbers, over many seeds: that of all rows, within four standard errors."""
    rows = np.arange(40)
    means = [np.mean(assign_evenly(rows, 4, seed)[0]) for seed in range(300)]
    error = np.sqrt(rows.var() / 10 * 30 / 39 / 300)  # without replacement
    assert abs(np.mean(means) - rows.mean()) < 4 * error


def test_too_few_rows():
    with pytest.raises(DataError, match="3 samples of new clients are too few to test 4 clients on"):
        assign_evenly(np.arange(3), 4, 0)
    assert sorted(map(len, assign_evenly(np.arange(3), 4, 0, least=0))) == [0, 1, 1, 1]


def test_a_long_list_of_names_is_cut():
    note = note_on_newcomers("videos", [f"v{i}" for i in range(60)], 9)
    assert "60 videos take no part in training" in note
    assert "v39 and 20 more" in note
    assert "v40" not in note


def test_a_shared_model_scores_alike_on_the_shares_and_on_the_new_clients_themselves(tmp_path):
    """What is dealt to the clients as test samples, and the new clients' own splits, are the same utterances."""
    root = write_mosi(tmp_path)
    known, new = (mosi(root, split="published", new=new) for new in (False, True))
    run = idiolect.run(known, "mlr", idiolect.FedAvgFineTuned(rate=0.1), rounds=3, eval_every=3)
    shared = run.scores("global", "test")
    trained = run.evaluator.simulation
    simulation = Simulation(new, trained.objective, trained.params, trained.algorithm)
    state = replace(simulation.init(0), shared=run.state.shared)
    scores = Evaluator(simulation)(state, ["global"], SPLITS)
    for of in (lambda s: s.loss, lambda s: s.values["accuracy"]):
        dealt = np.average(of(shared), weights=shared.count)
        parts = [(of(s), s.count) for s in scores]
        own = sum(np.nansum(values * count) for values, count in parts) / sum(count.sum() for _, count in parts)
        assert own == pytest.approx(dealt, rel=1e-5)
    assert shared.count.sum() == sum(s.count.sum() for s in scores) == 16
