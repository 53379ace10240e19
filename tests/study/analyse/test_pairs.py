import math

import numpy as np
import pytest

from idiolect.metrics.registry import METRICS
from idiolect.study.analyse.intervals import holm, least_shown, paired
from idiolect.study.analyse.pairs import pairs_among, pairs_of, reference_of
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.stores import NAN, experiment, finished, scored


@pytest.fixture
def results(tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "fedavg"}, {"name": "local"}, {"name": "ditto"}, {"name": "pfedme"}], seeds=3)
    for seed in range(3):
        finished(store, exp, "cell0", "fedavg", seed, {20: {"global": (0.7 + seed / 10,) * 3 + (NAN,)}})
        finished(store, exp, "cell0", "local", seed, {20: {"local": (0.5 + seed / 20,) * 3 + (NAN,)}})
    finished(store, exp, "cell0", "ditto", 1, {20: {"personal": (0.9,) * 3 + (NAN,)}})
    return Results(store, exp)


def test_pairs_are_of_common_seeds_in_percent(results):
    cell = results.experiment.cells[0]
    assert reference_of(results, cell) == ("local", "local")
    fedavg, ditto = pairs_of(results, cell)
    expected = paired([70.0, 80.0, 90.0], [50.0, 55.0, 60.0])
    assert (fedavg.method, fedavg.model) == ("fedavg", "global")
    assert fedavg.difference.mean == pytest.approx(expected.mean)
    assert (fedavg.difference.low, fedavg.p) == (pytest.approx(expected.low), pytest.approx(expected.p))
    assert (ditto.method, ditto.difference) == ("ditto", None)  # one common seed
    assert math.isnan(ditto.p)
    assert not ditto.beyond
    assert math.isnan(ditto.least)
    assert fedavg.least == pytest.approx(least_shown(3, 100 / 40))  # of 40 test samples


def test_p_values_are_corrected_for_the_whole_table(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "local"}, {"name": "fedavg"}, {"name": "fedprox"}], seeds=3)
    for seed in range(3):
        finished(store, exp, "cell0", "local", seed, {20: {"local": (0.5 + seed / 50,) * 4}})
        finished(store, exp, "cell0", "fedavg", seed, {20: {"global": (0.6 + seed / 30,) * 4}})
        finished(store, exp, "cell0", "fedprox", seed, {20: {"global": (0.5 + seed / 10,) * 4}})
    pairs = pairs_of(Results(store, exp), exp.cells[0])
    assert [pair.p for pair in pairs] == pytest.approx(holm([pair.difference.p for pair in pairs]))
    assert pairs[0].p == pytest.approx(2 * pairs[0].difference.p)


def test_the_same_gap_in_both_seeds_is_not_beyond_noise_unless_it_is_large(tmp_path):
    """Two seeds, 40 test samples: 10 points are four samples, 40 points sixteen; two seeds show nine at least."""
    store, exp = Store(tmp_path), experiment([{"name": "local"}, {"name": "fedavg"}, {"name": "fedprox"}], seeds=2)
    for seed in range(2):
        finished(store, exp, "cell0", "local", seed, {20: {"local": (0.5 + seed / 10,) * 4}})
        finished(store, exp, "cell0", "fedavg", seed, {20: {"global": (0.6 + seed / 10,) * 4}})
        finished(store, exp, "cell0", "fedprox", seed, {20: {"global": (0.9 + seed / 10,) * 4}})
    fedavg, fedprox = pairs_of(Results(store, exp), exp.cells[0])
    assert (fedavg.difference.mean, fedavg.beyond) == (pytest.approx(10), False)
    assert fedavg.difference.high == pytest.approx(10 + least_shown(2, 2.5))
    expected = paired([90.0, 100.0], [50.0, 60.0], resolution=2.5)
    assert fedprox.p == pytest.approx(2 * expected.p)
    assert fedprox.least == pytest.approx(22.46, abs=0.01)


def test_equal_gaps_of_a_metric_without_steps_have_no_p_value(tmp_path):
    regression = {"data": {"name": "school"}, "model": "linear"}
    methods = [{"name": "local"}, {"name": "fedavg"}, {"name": "fedprox"}]
    store, exp = Store(tmp_path), experiment(methods, seeds=3, cells=[regression])
    for seed in range(3):
        for name, model, score in (("local", "local", 0.5), ("fedavg", "global", 0.25), ("fedprox", "global", 0.3)):
            wave = seed / 64 if name == "fedprox" else 0.0
            course = {20: {model: (score + seed / 8 + wave,) * 4}}
            finished(store, exp, "cell0", name, seed, course, task="regression")
    fedavg, fedprox = pairs_of(Results(store, exp), exp.cells[0])
    assert (fedavg.difference.p, fedavg.difference.low, fedavg.beyond) == (None, None, False)
    assert math.isnan(fedavg.p)
    assert fedprox.p == pytest.approx(2 * fedprox.difference.p)  # the test that could not be made still counts


def test_without_local_training_the_first_method_is_the_reference(results):
    cell = results.experiment.cells[0]
    others = tuple(method for method in cell.methods if method.name != "local")
    assert reference_of(results, cell.model_copy(update={"methods": others})) == ("fedavg", "global")


def test_two_seeds_are_tested_and_a_seed_without_a_score_is_left_out():
    scores = {("local", "local"): {}, ("ditto", "personal"): {}, ("fedavg", "global"): {}}
    for seed, (local, ditto) in enumerate(((2.0, 1.0), (2.1, 1.3), (NAN, 1.2))):
        for key, value in ((("local", "local"), local), (("ditto", "personal"), ditto)):
            scores[key][seed] = scored("m", "test", np.full(4, value), np.full(4, 9), "regression")
    scores["fedavg", "global"][0] = scores["local", "local"][0]
    ditto, fedavg = pairs_among(scores, ("local", "local"), METRICS["mse"], ["a", "b", "c", "d"])
    expected = paired([1.0, 1.3], [2.0, 2.1])
    assert ditto.difference.mean == pytest.approx(-0.9)
    assert (ditto.difference.count, ditto.p) == (2, pytest.approx(expected.p))
    assert (fedavg.difference, math.isnan(fedavg.p)) == (None, True)
