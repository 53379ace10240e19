"""Held-out clients: who they are, and that nothing of them is left among those who train."""

from dataclasses import replace

import numpy as np
import pytest

import idiolect
from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SPLITS, from_arrays, hold_out, load, mosi
from idiolect.data.divide.newcomers import assign_evenly, note_on_newcomers
from idiolect.data.divide.newcomers import hold_out as same
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.simulate import Simulation
from tests.data.mosi_data import write_mosi

SPEC = {"name": "synthetic", "clients": 10, "max_size": 40}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return from_arrays({f"c{i}": (rng.normal(size=(8, 2)), np.arange(8) % 2) for i in range(10)})


def test_the_clients_are_divided_and_each_keeps_its_samples(data):
    assert hold_out is same
    known = hold_out(data, 0.3, seed=4)
    new = known.held_out
    assert (known.num_clients, new.num_clients) == (7, 3)
    assert {*known.clients} | {*new.clients} == {*data.clients}
    for part in (known, new):
        for i, name in enumerate(part.clients):
            np.testing.assert_array_equal(part.train.client(i)[0], data.train.client(data.clients.index(name))[0])
    assert f"3 of 10 clients are held out and take no part in training: {', '.join(new.clients)}" in known.notes[-1]
    assert known.provenance["held_out"] == {"clients": [*new.clients], "seed": 4}
    assert hold_out(data, 0.3, seed=5).held_out.clients != new.clients
    assert hold_out(data, 0.3, seed=4).fingerprint == known.fingerprint != data.fingerprint


def test_the_same_known_clients_beside_other_new_ones_are_other_data(data):
    """Their results differ, so a folder must not mix them."""
    few, more = hold_out(data, ["c9"]), hold_out(data.select(lambda i: i < 9), ["c8"])
    assert few.select(lambda i: i < 8).clients == more.clients
    assert few.select(lambda i: i < 8).fingerprint != more.fingerprint


@pytest.mark.parametrize(("share", "number"), [(0.01, 1), (0.99, 9), (0.2, 2), (["c3", "c7"], 2), ("c3", 1)])
def test_at_least_one_is_held_out_and_one_stays(data, share, number):
    assert hold_out(data, share).held_out.num_clients == number


@pytest.mark.parametrize(
    ("held_out", "message"),
    [
        (0.0, "held_out = 0.0 must lie between 0 and 1"),
        (1, "held_out = 1 must lie between 0 and 1"),
        (["c3", "c33"], "unknown client in held_out 'c33'"),
        ([], "held_out names 0 of 10 clients"),
        ([f"c{i}" for i in range(10)], "held_out names 10 of 10 clients"),
    ],
)
def test_what_makes_no_sense_is_refused(data, held_out, message):
    with pytest.raises(ConfigError, match=message):
        hold_out(data, held_out)


def test_a_sole_client_and_a_second_time_are_refused(data):
    with pytest.raises(ConfigError, match="needs two clients at least"):
        hold_out(data.select(lambda i: i == 0), 0.5)
    with pytest.raises(ConfigError, match="held out already"):
        hold_out(hold_out(data, 0.5), 0.5)


def test_every_source_takes_it():
    known = load({**SPEC, "held_out": 0.2})
    assert (known.num_clients, known.held_out.num_clients) == (8, 2)
    assert load({**SPEC, "held_out": 0.2, "held_out_seed": 3}).held_out.clients != known.held_out.clients
    assert load({**SPEC, "held_out": ["client 3"]}).held_out.clients == ("client 3",)
    assert load(SPEC).held_out is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"held_out": "some"}, "held_out = 'some' must be a number or a list of names"),
        ({"held_out": True}, "held_out"),
        ({"held_out_seed": 1}, "held_out_seed needs held_out"),
        ({"held_out": 0.2, "held_out_seed": -1}, "seed must not be negative"),
        ({"held_aut": 0.2}, "held_aut"),
    ],
)
def test_bad_options_of_a_source_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        load({**SPEC, **options})


def test_a_normalisation_fitted_on_all_clients_is_told(data):
    fitted = "the encoding of the samples was fitted on the training rows of the held-out clients, too"
    assert fitted not in hold_out(data, 0.2).notes
    assert fitted in hold_out(data, 0.2, fitted=True).notes


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


@pytest.mark.second
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
